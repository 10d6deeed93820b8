"""Rhai for Pygments. Its words are those of the program, which a test compares."""

from pygments.lexer import RegexLexer, bygroups, include, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

DECLARATIONS = ("let", "const", "fn", "private", "import", "export", "as")
CONSTANTS = ("true", "false")
CONTROL = (
    *("if", "else", "while", "loop", "do", "until", "for", "in", "break", "continue", "return", "switch", "try", "catch", "throw"),
    *("this", "global"),
)
FUNCTIONS = ("Fn", "call", "curry", "is_shared", "is_def_fn", "is_def_var", "type_of", "print", "debug", "eval")


def all_of(names):
    return words(names, prefix=r"\b", suffix=r"\b")


class RhaiLexer(RegexLexer):
    """Also of the commands that sessions know, which begin a line with `%` or `:`."""

    name = "Rhai"
    aliases = ["rhai"]
    filenames = ["*.rhai"]
    mimetypes = ["text/x-rhai"]
    url = "https://rhai.rs"

    tokens = {
        "root": [(r"\A(?:(?::|%%?)[a-z][^\n]*\n?)+", Comment.Preproc), (r"\}", Punctuation), include("code")],
        "code": [
            (r"\s+", Text),
            (r"//[^\n]*", Comment.Single),
            (r"/\*", Comment.Multiline, "comment"),
            (r'(#+)"(?:.|\n)*?"\1', String),
            (r'"(?:[^"\\\n]|\\.|\\\n)*"?', String.Double),
            (r"'(?:[^'\\\n]|\\.)*'?", String.Char),
            (r"`", String.Backtick, "template"),
            (r"0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+", Number),
            (r"\d[\d_]*\.\d[\d_]*(?:[eE][-+]?\d+)?|\d[\d_]*[eE][-+]?\d+", Number.Float),
            (r"\d[\d_]*", Number.Integer),
            (r"(\.)(\s*)([^\W\d]\w*)(?=\s*\()", bygroups(Operator, Text, Name.Function)),
            (r"(\.)(\s*)([^\W\d]\w*)", bygroups(Operator, Text, Name.Attribute)),
            (r"(fn)(\s+)([^\W\d]\w*)", bygroups(Keyword.Declaration, Text, Name.Function)),
            (all_of(DECLARATIONS), Keyword.Declaration),
            (all_of(CONSTANTS), Keyword.Constant),
            (all_of(CONTROL), Keyword),
            (all_of(FUNCTIONS), Name.Builtin),
            (r"[^\W\d]\w*(?=\s*::)", Name.Namespace),
            (r"[^\W\d]\w*(?=\s*\()", Name.Function),
            (r"[^\W\d]\w*", Name),
            (r"#\{|\{", Punctuation, "braces"),
            (r"[-+*/%<>=!&|^~?.]+", Operator),
            (r"::|[()\[\],:;#@$\\]", Punctuation),
        ],
        "braces": [(r"\}", Punctuation, "#pop"), include("code")],
        "comment": [
            (r"[^/*]+", Comment.Multiline),
            (r"/\*", Comment.Multiline, "#push"),
            (r"\*/", Comment.Multiline, "#pop"),
            (r"[/*]", Comment.Multiline),
        ],
        "template": [
            (r"`", String.Backtick, "#pop"),
            (r"\$\{", String.Interpol, "interpolation"),
            (r"[^`$]+|\$", String.Backtick),
        ],
        "interpolation": [(r"\}", String.Interpol, "#pop"), include("code")],
    }
