//! `import "name" as alias;`: the recipes that are part of the program, and scripts of one's own.

use super::calls;
use super::explore::tokens::{Kind, Token, tokens};
use super::file_access;
use super::item::Item;
use super::raise;
use super::recipe;
use super::recipes::{RECIPES, recipe_items, source};
use super::report::Failure;
use crate::error::nearest;
use crate::report::runs::is_of_run;
use crate::store::{self, noted};
use anyhow::anyhow;
use rhai::{Engine, EvalAltResult, Module, ModuleResolver, Position, Scope};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What errors call the file of a recipe.
fn file_of(recipe: &str) -> String {
    format!("stdlib/{recipe}.rhai")
}

/// An imported script.
struct Loaded {
    /// What errors call it.
    file: String,
    text: String,
    /// None until it has run.
    module: Option<Arc<Module>>,
    items: Vec<Item>,
    /// The files that it imports itself.
    imports: Vec<String>,
    /// What tells versions of the files apart that it has read when it was imported.
    read: Vec<String>,
}

/// All that was imported in a session.
#[derive(Default)]
pub(super) struct Library {
    loaded: Mutex<Vec<Arc<Loaded>>>,
    /// Where scripts were changed to be compiled, by file.
    moved: Mutex<BTreeMap<String, calls::Moved>>,
}

thread_local! {
    /// The files whose import has begun and not ended, with those that they have imported: a script that imports itself would never end.
    static BEGUN: RefCell<Vec<(String, Vec<String>)>> = const { RefCell::new(Vec::new()) };
}

impl Library {
    fn find(&self, file: &str) -> Option<Arc<Loaded>> {
        let all = self.loaded.lock().unwrap_or_else(|e| e.into_inner());
        all.iter().find(|l| l.file == file).cloned()
    }

    /// The text of an imported file, or of a recipe.
    pub fn text(&self, file: &str) -> Option<String> {
        self.find(file).map(|l| l.text.clone())
    }

    /// A checksum of an imported file and of all that it imports, without comments and spaces.
    pub fn checksum(&self, file: &str) -> Option<u32> {
        let loaded = self.find(file)?;
        let mut hash = crc32fast::Hasher::new();
        hash.update(code(&loaded.text).as_bytes());
        let sums = loaded.imports.iter().filter_map(|i| self.checksum(i));
        sums.for_each(|sum| hash.update(&sum.to_le_bytes()));
        Some(hash.finalize())
    }

    /// What tells versions of the files apart that an imported file, and those that it imports, have read when they were imported.
    pub fn read(&self, file: &str) -> Vec<String> {
        let loaded = self.find(file).into_iter();
        let read = loaded.flat_map(|l| {
            let inner: Vec<_> = l.imports.iter().flat_map(|i| self.read(i)).collect();
            [l.read.clone(), inner].concat()
        });
        read.collect()
    }

    /// The parameters that an imported file and those that it imports ask for; None where a name is computed, or given in another way than `param("name"`.
    pub fn parameters(&self, file: &str) -> Option<BTreeSet<String>> {
        let Some(loaded) = self.find(file) else {
            return Some(BTreeSet::new());
        };
        let all = words(&loaded.text);
        let asks = (0..all.len()).filter(|k| matches!(all[*k].text, "param" | "\"param\""));
        let names = asks.map(|k| {
            let method = k > 0 && all[k - 1].is(".");
            match all.get(k + 1..k + 4)? {
                [open, name, end] if open.is("(") && (end.is(",") || end.is(")")) && !method => {
                    let name = name.text.strip_prefix('"')?.strip_suffix('"')?;
                    (!name.contains(['\\', '"'])).then(|| name.to_string())
                }
                _ => None,
            }
        });
        let mut out = names.collect::<Option<BTreeSet<_>>>()?;
        for import in &loaded.imports {
            out.append(&mut self.parameters(import)?);
        }
        Some(out)
    }

    /// What an imported file offers.
    pub fn items(&self, file: &str) -> Vec<Item> {
        self.find(file).map_or_else(Vec::new, |l| l.items.clone())
    }

    /// The scripts of one's own that were imported, for run.json; the program's version says what the recipes were.
    pub fn own_scripts(&self) -> Vec<(String, String)> {
        let all = self.loaded.lock().unwrap_or_else(|e| e.into_inner());
        let own = all.iter().filter(|l| !is_recipe(&l.file));
        own.map(|l| (l.file.clone(), l.text.clone())).collect()
    }

    /// Remember where a script was changed.
    pub fn note_moved(&self, file: &str, moved: calls::Moved) {
        let mut all = self.moved.lock().unwrap_or_else(|e| e.into_inner());
        all.insert(file.into(), moved);
    }

    /// Where a position of a file is in its text.
    pub fn original(&self, file: &str, position: Position) -> Position {
        let all = self.moved.lock().unwrap_or_else(|e| e.into_inner());
        all.get(file).map_or(position, |m| m.original(position))
    }

    fn keep(&self, new: Loaded) {
        let mut all = self.loaded.lock().unwrap_or_else(|e| e.into_inner());
        all.retain(|l| l.file != new.file);
        all.push(Arc::new(new));
    }

    /// Whether a file and all that it imports are still what was read.
    fn is_current(&self, file: &str) -> bool {
        is_recipe(file)
            || self.find(file).is_some_and(|l| {
                // Without a module it is just being read.
                l.module.is_some()
                    && read_text(Path::new(file)).is_ok_and(|text| text == l.text)
                    && l.imports.iter().all(|i| self.is_current(i))
            })
    }

    /// Import `path` in the script `from`, whose results are in the folder `out`.
    fn load(
        &self,
        engine: &Engine,
        (from, path): (&str, &str),
        out: &Path,
    ) -> super::Bound<Arc<Module>> {
        let (file, text) = locate(from, path)?;
        if !is_recipe(&file) {
            file_access::ensure_open("import")?;
        }
        BEGUN.with_borrow_mut(|b| {
            if let Some((_, imports)) = b.last_mut() {
                imports.push(file.clone());
            }
        });
        // A file that was changed since is another script.
        let known = self
            .find(&file)
            .filter(|l| l.text == text && l.imports.iter().all(|i| self.is_current(i)));
        if let Some(module) = known.and_then(|l| l.module.clone()) {
            return Ok(module);
        }
        let circle = BEGUN.with_borrow(|b| {
            let names: Vec<_> = b.iter().map(|(file, _)| file.as_str()).collect();
            let first = names.iter().position(|f| *f == file)?;
            Some(names[first..].join(" → "))
        });
        if let Some(circle) = circle {
            let what =
                anyhow!("import \"{path}\": this script would import itself: {circle} → {file}");
            return Err(raise(what));
        }
        let (mut ast, moved) = calls::compile(engine, &Scope::new(), &text, &[])
            .map_err(|e| raise(anyhow!(Failure::parse(&file, &text, &e))))?;
        self.note_moved(&file, moved);
        ast.set_source(file.as_str());
        // Its text is needed to show where it fails.
        let loaded = |module, items, imports, read| Loaded {
            file: file.clone(),
            text: text.clone(),
            module,
            items,
            imports,
            read,
        };
        self.keep(loaded(None, Vec::new(), Vec::new(), Vec::new()));
        BEGUN.with_borrow_mut(|b| b.push((file.clone(), Vec::new())));
        let make = || Module::eval_ast_as_new(Scope::new(), &ast, engine);
        let (made, read) = noted::during(is_data(out), make);
        let imports = BEGUN.with_borrow_mut(|b| b.pop().map_or(Vec::new(), |(_, imports)| imports));
        // As if it were a function that is called by the import.
        let module: Arc<Module> = made
            .map_err(|e| {
                let (name, file, nowhere) = (path.to_string(), file.clone(), Position::NONE);
                Box::new(EvalAltResult::ErrorInFunctionCall(name, file, e, nowhere))
            })?
            .into();
        let items = match is_recipe(&file) {
            true => {
                let own = recipe_items().iter().filter(|i| i.namespace == path);
                own.cloned().collect()
            }
            false => recipe::items(path, &text, ""),
        };
        let read = read.into_values().collect();
        self.keep(loaded(Some(module.clone()), items, imports, read));
        Ok(module)
    }
}

/// Tells the data that scripts read from scripts and from what runs leave, in the folder of results `out` and elsewhere.
pub fn is_data(out: &Path) -> impl Fn(&Path) -> bool + 'static {
    let out = out.to_path_buf();
    move |file| !is_script(file) && !is_of_run(file, &out)
}

/// Whether a file is a script, by its name.
fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "rhai")
}

/// The words of a script, without its comments.
fn words(text: &str) -> Vec<Token<'_>> {
    let mut all = tokens(text);
    all.retain(|t| !matches!(t.kind, Kind::Comment(_)));
    all
}

/// A script without comments and spaces: two of them that are the same here do the same.
pub fn code(text: &str) -> String {
    words(text).iter().flat_map(|t| [t.text, "\n"]).collect()
}

/// The text of a script, without the mark at its beginning by which some editors say that it is UTF-8.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    let text = store::disk::read_text(path)?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.into(),
        None => text,
    })
}

fn is_recipe(file: &str) -> bool {
    RECIPES.iter().any(|(name, _)| file_of(name) == file)
}

/// The file of an import within the script `from`, and its text. A recipe's name always means the recipe.
fn locate(from: &str, path: &str) -> super::Bound<(String, String)> {
    if let Some(text) = source(path) {
        return Ok((file_of(path), text.into()));
    }
    let folder = Path::new(from).parent().filter(|_| !is_recipe(from));
    let mut file: PathBuf = folder.unwrap_or(Path::new("")).join(path);
    if !is_script(&file) {
        file.as_mut_os_string().push(".rhai");
    }
    let file = without_detours(&file);
    let shown = file.display().to_string();
    let text = read_text(&file).map_err(|e| {
        raise(match e.kind() {
            std::io::ErrorKind::NotFound => {
                let names = || RECIPES.iter().map(|(name, _)| *name);
                let near = nearest(path, names());
                let hint = near.map_or(String::new(), |n| format!("; did you mean '{n}'?"));
                let all = names().collect::<Vec<_>>().join(", ");
                anyhow!("import \"{path}\": there is no such recipe, and no file {shown}{hint}\nrecipes: {all}")
            }
            _ => anyhow!("import \"{path}\": {shown}: {e}"),
        })
    })?;
    Ok((shown, text))
}

/// `a/../b` as `b`, so that a file has one name.
fn without_detours(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match (part, out.components().next_back()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => drop(out.pop()),
            _ => out.push(part),
        }
    }
    out
}

/// Finds what is imported.
pub(super) struct Resolver {
    pub library: Arc<Library>,
    /// The folder of results.
    pub out: PathBuf,
}

impl ModuleResolver for Resolver {
    fn resolve(
        &self,
        engine: &Engine,
        source: Option<&str>,
        path: &str,
        position: Position,
    ) -> super::Bound<Arc<Module>> {
        let found = self
            .library
            .load(engine, (source.unwrap_or(""), path), &self.out);
        found.map_err(|mut e| {
            if e.position().is_none() {
                e.set_position(position);
            }
            e
        })
    }
}
