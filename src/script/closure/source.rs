//! The text of a closure as its tree has it, without comments, spaces and places; what it calls; and what in it cannot be.

use super::identity::identity;
use super::rules::{self, method, root};
use rhai::{
    AST, ASTFlags, ASTNode, BinaryExpr, Dynamic, Expr, FlowControl, FnCallExpr, FnPtr,
    ImmutableString, Module, OpAssignment, Position, ScriptFuncDef, Shared, Stmt,
    SwitchCasesCollection,
};
use std::collections::BTreeSet;

/// A function of a script.
pub(super) type Function = Shared<ScriptFuncDef>;

/// What was read of a closure and of the functions that it calls.
pub(super) struct Source<'a> {
    /// All functions of a name.
    find: &'a dyn Fn(&str) -> Vec<Function>,
    pub text: String,
    /// Variables that are changed where they stand, and where.
    pub changed: Vec<(ImmutableString, Position)>,
    /// Variables that methods are called on, and which.
    methods: Vec<(ImmutableString, ImmutableString, Position)>,
    /// What cannot be, why, and where.
    pub refused: Vec<(String, &'static str, Position)>,
    /// Constants of the script that are named in full, and namespaces.
    pub constants: BTreeSet<String>,
    pub spaces: BTreeSet<String>,
    /// Names of variables that are made within.
    own: BTreeSet<ImmutableString>,
    /// Functions that are called, by name, in the order in which they are.
    called: Vec<ImmutableString>,
}

impl<'a> Source<'a> {
    /// Read a closure without the functions that it calls.
    pub fn of(function: &ScriptFuncDef, find: &'a dyn Fn(&str) -> Vec<Function>) -> Self {
        let mut out = Self {
            find,
            text: String::new(),
            changed: Vec::new(),
            methods: Vec::new(),
            refused: Vec::new(),
            constants: BTreeSet::new(),
            spaces: BTreeSet::new(),
            own: BTreeSet::new(),
            called: Vec::new(),
        };
        out.function(function, false);
        out
    }

    /// Captured variables that it changes, of these with their values.
    pub fn changes(&self, captured: &[(ImmutableString, Dynamic)]) -> Vec<(String, Position)> {
        let of = |name: &ImmutableString| {
            let mut all = captured.iter();
            all.find(|(n, _)| n == name && !self.own.contains(name))
        };
        let assigned = self.changed.iter().filter(|(name, _)| of(name).is_some());
        let methods = self
            .methods
            .iter()
            .filter(|(name, method, _)| of(name).is_some_and(|(_, x)| rules::changes(method, x)));
        let assigned = assigned.map(|(name, at)| (name.to_string(), *at));
        assigned
            .chain(methods.map(|(name, _, at)| (name.to_string(), *at)))
            .collect()
    }

    /// Whether a method is called on a variable that may change it, for all that can be read here: calls have to be watched. Nothing else that is
    /// not an assignment changes an array or a map, since functions get copies.
    pub fn may_change(&self, name: &str) -> bool {
        let of = |method: &str| !rules::reads(method) || !(self.find)(method).is_empty();
        let mut methods = self.methods.iter();
        methods.any(|(on, method, _)| on == name && of(method))
    }

    /// Read on: the functions that it calls, and those that they call.
    pub fn with_functions(&mut self) {
        let mut next = 0;
        while let Some(name) = self.called.get(next).cloned() {
            next += 1;
            let mut all = (self.find)(&name);
            all.sort_by_key(|f| f.params.len());
            for f in all {
                self.text += &format!("\nfn {name}");
                self.function(&f, true);
            }
        }
    }

    fn function(&mut self, f: &ScriptFuncDef, named: bool) {
        let names: Vec<_> = f.params.iter().map(|p| p.as_str()).collect();
        let marks = if named { ["(", ") "] } else { ["|", "| "] };
        self.text += &format!("{}{}{}", marks[0], names.join(", "), marks[1]);
        // What functions do to their own variables stays there.
        let before = (self.changed.len(), self.methods.len());
        self.block(&body(f));
        if named {
            self.changed.truncate(before.0);
            self.methods.truncate(before.1);
        }
    }

    fn call(&mut self, name: &ImmutableString) {
        if !self.called.contains(name) {
            self.called.push(name.clone());
        }
    }

    fn refuse(&mut self, name: &str, at: Position) {
        if let Some(why) = rules::refused(name).filter(|_| (self.find)(name).is_empty()) {
            self.refused.push((name.into(), why, at));
        }
    }

    fn block(&mut self, statements: &[Stmt]) {
        self.text += "{ ";
        for s in statements {
            self.statement(s);
            self.text += "; ";
        }
        self.text += "}";
    }

    fn statement(&mut self, s: &Stmt) {
        match s {
            Stmt::Noop(_) | Stmt::Share(_) => {}
            Stmt::If(x, _) => {
                self.headed("if ", x);
                self.text += " else ";
                self.block(x.branch.statements());
            }
            Stmt::Switch(x, _) => self.switch(&x.0, &x.1),
            Stmt::While(x, _) => self.headed("while ", x),
            Stmt::Do(x, flags, _) => {
                self.text += "do ";
                self.block(x.body.statements());
                self.text += either(*flags, ASTFlags::NEGATED, " until ", " while ");
                self.expression(&x.expr);
            }
            Stmt::For(x, _) => {
                let (name, counter, x) = &**x;
                self.own.insert(name.name.clone());
                self.text += &format!("for {}", name.name);
                if let Some(c) = counter {
                    self.own.insert(c.name.clone());
                    self.text += &format!(", {}", c.name);
                }
                self.headed(" in ", x);
            }
            Stmt::Var(x, flags, _) => {
                self.own.insert(x.0.name.clone());
                let word = either(*flags, ASTFlags::CONSTANT, "const", "let");
                self.text += &format!("{word} {} = ", x.0.name);
                self.expression(&x.1);
            }
            Stmt::Assignment(x) => self.assignment(&x.0, &x.1),
            Stmt::FnCall(x, at) => self.calls(x, Some(*at)),
            Stmt::Block(b) => self.block(b.statements()),
            Stmt::TryCatch(x, _) => {
                self.text += "try ";
                self.block(x.body.statements());
                self.text += " catch ";
                if let Expr::Variable(v, ..) = &x.expr {
                    self.own.insert(v.1.clone());
                }
                self.expression(&x.expr);
                self.block(x.branch.statements());
            }
            Stmt::Expr(e) => self.expression(e),
            Stmt::BreakLoop(e, flags, _) => {
                let word = either(*flags, ASTFlags::BREAK, "break ", "continue ");
                self.exit(word, e.as_deref());
            }
            Stmt::Return(e, flags, _) => {
                let word = either(*flags, ASTFlags::BREAK, "throw ", "return ");
                self.exit(word, e.as_deref());
            }
            Stmt::Import(x, at) => {
                let why = "imports stand at the top of the script";
                self.refused.push(("import".into(), why, *at));
                self.expression(&x.0);
            }
            other => self.text += &format!("{other:?}"),
        }
    }

    /// A word, an expression and the block after it.
    fn headed(&mut self, word: &str, x: &FlowControl) {
        self.text += word;
        self.expression(&x.expr);
        self.block(x.body.statements());
    }

    fn switch(&mut self, of: &Expr, cases: &SwitchCasesCollection) {
        self.text += "switch ";
        self.expression(of);
        // Of values there are only checksums.
        let mut values: Vec<_> = cases
            .cases
            .iter()
            .map(|(k, v)| format!("{k}: {:?}", v.blocks))
            .collect();
        values.sort();
        self.text += &format!("{values:?} {:?} {:?} ", cases.ranges, cases.def_case);
        for e in &cases.expressions {
            self.expression(&e.lhs);
            self.text += " => ";
            self.expression(&e.rhs);
            self.text += ", ";
        }
    }

    fn assignment(&mut self, operator: &OpAssignment, sides: &BinaryExpr) {
        if let Some(name) = root(&sides.lhs) {
            self.changed
                .push((name.clone(), sides.lhs.start_position()));
        }
        self.expression(&sides.lhs);
        let sign = operator.get_op_assignment_info().map_or("=", |i| i.3);
        self.text += &format!(" {sign} ");
        self.expression(&sides.rhs);
    }

    /// What leaves a loop or a function, with the value if there is one.
    fn exit(&mut self, word: &str, value: Option<&Expr>) {
        self.text += word;
        value.into_iter().for_each(|e| self.expression(e));
    }

    fn list<'e>(&mut self, all: impl IntoIterator<Item = &'e Expr>, between: &str) {
        for (i, e) in all.into_iter().enumerate() {
            if i > 0 {
                self.text += between;
            }
            self.expression(e);
        }
    }

    /// Operands, in parentheses: what else is in the expression must not be taken for one of them.
    fn enclosed(&mut self, all: &[Expr], between: &str) {
        self.text += "(";
        self.list(all, between);
        self.text += ")";
    }

    /// A call; of a function that is no method, with its place.
    fn calls(&mut self, x: &FnCallExpr, at: Option<Position>) {
        // A closure within, with what it captures.
        if let ("curry", [Expr::DynamicConstant(f, _), captured @ ..]) =
            (x.name.as_str(), &x.args[..])
            && let Some(f) = f.read_lock::<FnPtr>()
        {
            return self.pointer(&f, captured.len());
        }
        if x.op_token.is_some() && x.args.len() <= 2 {
            if x.args.len() == 1 {
                self.text += &x.name;
            }
            return self.enclosed(&x.args, &format!(" {} ", x.name));
        }
        let path = x.namespace.path.iter().map(|i| i.name.as_str());
        let name = path.chain([x.name.as_str()]).collect::<Vec<_>>().join("::");
        at.iter().for_each(|at| self.refuse(&name, *at));
        match x.namespace.path.first() {
            Some(first) => drop(self.spaces.insert(first.name.to_string())),
            None => self.call(&x.name),
        }
        self.text += &name;
        self.text += "(";
        self.list(&x.args, ", ");
        self.text += ")";
    }

    fn expression(&mut self, e: &Expr) {
        match e {
            Expr::DynamicConstant(x, _) => self.constant(x),
            Expr::BoolConstant(x, _) => self.text += &x.to_string(),
            Expr::IntegerConstant(x, _) => self.text += &x.to_string(),
            Expr::FloatConstant(x, _) => self.text += &format!("{:?}", **x),
            Expr::CharConstant(x, _) => self.text += &format!("{x:?}"),
            Expr::StringConstant(x, _) => self.text += &format!("{:?}", x.as_str()),
            Expr::Unit(_) => self.text += "()",
            Expr::ThisPtr(_) => self.text += "this",
            Expr::InterpolatedString(all, _) => {
                self.text += "`";
                self.list(all.iter(), " ");
                self.text += "`";
            }
            Expr::Array(all, _) => {
                self.text += "[";
                self.list(all.iter(), ", ");
                self.text += "]";
            }
            Expr::Map(x, _) => {
                self.text += "#{ ";
                for (name, e) in &x.0 {
                    self.text += &format!("{}: ", name.name);
                    self.expression(e);
                    self.text += ", ";
                }
                self.text += "}";
            }
            Expr::Variable(x, ..) => {
                let path: Vec<_> = x.2.path.iter().map(|i| i.name.as_str()).collect();
                match path.first() {
                    Some(&"global") => drop(self.constants.insert(x.1.to_string())),
                    Some(first) => drop(self.spaces.insert(first.to_string())),
                    // It may be a function that is meant.
                    None => self.call(&x.1),
                }
                for part in path {
                    self.text += &format!("{part}::");
                }
                self.text += &x.1;
            }
            Expr::Property(x, _) => self.text += &x.2,
            Expr::FnCall(x, at) => self.calls(x, Some(*at)),
            Expr::MethodCall(x, _) => self.calls(x, None),
            Expr::Stmt(b) => self.block(b.statements()),
            Expr::Dot(x, flags, _) => {
                if let Some((name, method, at)) = method(e) {
                    self.methods.push((name, method, at));
                }
                self.expression(&x.lhs);
                self.text += either(*flags, ASTFlags::NEGATED, "?.", ".");
                self.expression(&x.rhs);
            }
            Expr::Index(x, flags, _) => {
                if let Some((name, method, at)) = method(e) {
                    self.methods.push((name, method, at));
                }
                self.expression(&x.lhs);
                self.text += either(*flags, ASTFlags::NEGATED, "?[", "[");
                self.expression(&x.rhs);
                self.text += "]";
            }
            Expr::And(all, _) => self.enclosed(all, " && "),
            Expr::Or(all, _) => self.enclosed(all, " || "),
            Expr::Coalesce(all, _) => self.enclosed(all, " ?? "),
            other => self.text += &format!("{other:?}"),
        }
    }

    fn constant(&mut self, x: &Dynamic) {
        match x.read_lock::<FnPtr>() {
            Some(f) => self.pointer(&f, 0),
            // Arrays and maps of constants hold no closures.
            None => self.text += &identity(x, &|f| f.fn_name().into()),
        }
    }

    /// A closure within, with so many captured variables, or a function by its name.
    fn pointer(&mut self, f: &FnPtr, captured: usize) {
        if !f.is_anonymous() {
            self.text += &format!("Fn({})", f.fn_name());
            return self.call(&f.fn_name().into());
        }
        for inner in (self.find)(f.fn_name()) {
            self.own.extend(inner.params.iter().skip(captured).cloned());
            self.function(&inner, false);
        }
    }
}

/// One of two words, by a flag.
fn either(
    flags: ASTFlags,
    flag: ASTFlags,
    with: &'static str,
    without: &'static str,
) -> &'static str {
    if flags.contains(flag) { with } else { without }
}

/// The statements of a function. Rhai does not name the type that holds them, but walks through them.
fn body(f: &ScriptFuncDef) -> Vec<Stmt> {
    let mut alone = Module::new();
    alone.set_script_fn(f.clone());
    let mut out = Vec::new();
    AST::new([], alone).walk(&mut |path| {
        if let [ASTNode::Stmt(s)] = path {
            out.push((*s).clone());
        }
        true
    });
    out
}
