//! Layering: which source sets which key, and the error when it may not.

use super::{Config, Paths};
use crate::env::Env;
use crate::exit::Failure;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Keys below this one are names of engines; such a name may hold dots.
const ENGINE_PATHS: &str = "competitors.paths.";

/// What the command line says about the configuration.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// `--config FILE`.
    pub(crate) file: Option<PathBuf>,
    /// `--set KEY=VALUE`, in order.
    pub(crate) set: Vec<String>,
    /// Flags with a key of their own: flag, key, value.
    pub(crate) flags: Vec<(&'static str, &'static str, String)>,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Default(&'static str),
    /// A variable of the environment.
    Env(&'static str),
    File(PathBuf),
    Set,
    Flag(&'static str),
}

/// The configuration and where each of its values came from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    table: Table,
    sources: BTreeMap<String, Source>,
}

/// Key, value and source, as `memra config` prints them.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) source: String,
}

/// Builds the configuration of this invocation.
///
/// # Errors
/// An unreadable file, an unknown key, a value of the wrong type or out of range; each names its source.
pub(crate) fn load(env: &Env, request: &Request) -> anyhow::Result<Loaded> {
    let (paths, why) = default_paths(env)?;
    let mut loaded = Loaded::new(Config::defaults(paths), why)?;
    if let Some(endpoint) = &env.hf_endpoint {
        loaded.set("hub.endpoint", endpoint, Source::Env("HF_ENDPOINT"))?;
    }
    let implicit = env.config_folder().map(|folder| folder.join("config.toml")).filter(|file| file.is_file());
    let file = request.file.clone().or_else(|| env.memra_config.clone()).or(implicit);
    if let Some(file) = file {
        loaded.layer_file(&file)?;
    }
    for assignment in &request.set {
        let (key, value) = assignment.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--set {assignment}: write KEY=VALUE, such as --set engine.threads=2"))
        })?;
        loaded.set(key.trim(), value.trim(), Source::Set).with_context(|| format!("--set {assignment}"))?;
    }
    for (flag, key, value) in &request.flags {
        loaded.set(key, value, Source::Flag(flag)).with_context(|| format!("{flag} {value}"))?;
    }
    // A data folder of one's own keeps its boards with it, so that a trial never touches the checkout's.
    if !loaded.is_default("paths.data") && loaded.is_default("paths.boards") {
        let boards = loaded.config.paths.data.join("boards").display().to_string();
        loaded.set("paths.boards", &boards, Source::Default("in paths.data"))?;
    }
    Ok(loaded)
}

/// The default folders and why they are these.
fn default_paths(env: &Env) -> anyhow::Result<(Paths, &'static str)> {
    let nowhere = || Failure::usage("HOME is not set; set it, or XDG_DATA_HOME and XDG_CACHE_HOME");
    let cache = env.cache_folder().ok_or_else(nowhere)?;
    if let Some(root) = &env.checkout {
        return Ok((
            Paths { data: root.join("tune-data"), cache, boards: root.join("boards") },
            "memra checkout",
        ));
    }
    let data = env.data_folder().ok_or_else(nowhere)?;
    Ok((Paths { data: data.join("tune-data"), cache, boards: data.join("boards") }, "user folder"))
}

impl Loaded {
    fn new(config: Config, paths_why: &'static str) -> anyhow::Result<Loaded> {
        let table = Table::try_from(&config)?;
        let mut sources = BTreeMap::new();
        for (key, _) in leaves(&table) {
            let why = match key.as_str() {
                "paths.cache" => "user folder",
                key if key.starts_with("paths.") => paths_why,
                _ => "",
            };
            sources.insert(key, Source::Default(why));
        }
        Ok(Loaded { config, table, sources })
    }

    fn layer_file(&mut self, file: &Path) -> anyhow::Result<()> {
        let name = file.display();
        let text = std::fs::read_to_string(file).with_context(|| format!("configuration file {name}"))?;
        let layer: Table =
            text.parse().map_err(|e: toml::de::Error| Failure::usage(format!("{name}: {e}")))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        for (key, value) in leaves(&layer) {
            let value = if is_path(&key) { from_folder(value, folder) } else { value };
            self.put(&key, value, Source::File(file.to_owned())).with_context(|| format!("{name}"))?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, text: &str, source: Source) -> anyhow::Result<()> {
        // A key that takes text takes it as it stands; any other value is read as TOML.
        let takes_text =
            key.starts_with(ENGINE_PATHS) || matches!(find(&self.table, key), Some(Value::String(_)));
        let value = if takes_text {
            Value::String(text.to_owned())
        } else {
            format!("value = {text}")
                .parse::<Table>()
                .ok()
                .and_then(|mut table| table.remove("value"))
                .unwrap_or_else(|| Value::String(text.to_owned()))
        };
        self.put(key, value, source)
    }

    /// Sets one key and re-reads the typed configuration, so that an error is the fault of this value.
    fn put(&mut self, key: &str, value: Value, source: Source) -> anyhow::Result<()> {
        match find_mut(&mut self.table, key) {
            Some(slot) => *slot = value,
            None => self.insert_named(key, value)?,
        }
        self.config = self.table.clone().try_into().map_err(|e| {
            let problem = e.to_string();
            Failure::usage(format!("{key}: {}", problem.lines().next().unwrap_or_default()))
        })?;
        self.sources.insert(key.to_owned(), source);
        Ok(())
    }

    /// Sets an entry of the one table whose keys are names of the user's.
    fn insert_named(&mut self, key: &str, value: Value) -> anyhow::Result<()> {
        let name = key.strip_prefix(ENGINE_PATHS).filter(|name| !name.is_empty());
        let table =
            self.table.get_mut("competitors").and_then(|t| t.get_mut("paths")).and_then(Value::as_table_mut);
        let (Some(name), Some(table)) = (name, table) else { return Err(unknown(key, &self.sources)) };
        table.insert(name.to_owned(), value);
        Ok(())
    }

    /// Every value with its source, sorted by key.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let entry = |(key, value): (String, Value)| {
            let source = self.sources.get(&key).map_or_else(String::new, ToString::to_string);
            Entry { key, value, source }
        };
        leaves(&self.table).into_iter().map(entry).collect()
    }

    /// Whether nothing set `key`.
    pub(crate) fn is_default(&self, key: &str) -> bool {
        matches!(self.sources.get(key), None | Some(Source::Default(_)))
    }

    /// Arguments that give another memra process in the same folder and home what was set here.
    pub(crate) fn as_arguments(&self) -> Vec<OsString> {
        self.arguments(|_| true)
    }

    /// The part of [`Loaded::as_arguments`] that changes what a model computes and how fast: what a benchmarked process
    /// needs, and what its record should show.
    pub(crate) fn as_engine_arguments(&self) -> Vec<OsString> {
        self.arguments(|key| key.starts_with("engine.") || key.starts_with("fault.") || key == "paths.data")
    }

    fn arguments(&self, wanted: impl Fn(&str) -> bool) -> Vec<OsString> {
        leaves(&self.table)
            .into_iter()
            .filter(|(key, _)| !self.is_default(key) && wanted(key))
            .flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={}", plain(&value))])
            .map(OsString::from)
            .collect()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default("") => write!(f, "default"),
            Source::Default(why) => write!(f, "default ({why})"),
            Source::Env(name) => write!(f, "{name}"),
            Source::File(file) => write!(f, "{}", file.display()),
            Source::Set => write!(f, "--set"),
            Source::Flag(flag) => write!(f, "{flag}"),
        }
    }
}

/// A value as `--set` takes it: text without quotes, anything else as TOML.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Every leaf of a table as a dotted key, in order.
fn leaves(table: &Table) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                out.extend(leaves(inner).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            other => out.push((key.clone(), other.clone())),
        }
    }
    out
}

fn find<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        Some((head, rest)) => find(table.get(head)?.as_table()?, rest),
        None => table.get(key).filter(|value| !value.is_table()),
    }
}

fn find_mut<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    match key.split_once('.') {
        Some((head, rest)) => find_mut(table.get_mut(head)?.as_table_mut()?, rest),
        None => table.get_mut(key).filter(|value| !value.is_table()),
    }
}

fn unknown(key: &str, known: &BTreeMap<String, Source>) -> anyhow::Error {
    let last = key.rsplit('.').next().unwrap_or(key);
    let near = known.keys().find(|k| k.rsplit('.').next().is_some_and(|name| alike(name, last)));
    let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Failure::usage(format!("`{key}` is not a configuration key{hint} (`memra config` lists them)"))
}

/// Whether one name is the other with a letter or two missing or added at the end, or with one letter changed.
fn alike(a: &str, b: &str) -> bool {
    let changed = a.len() == b.len() && a.bytes().zip(b.bytes()).filter(|(x, y)| x != y).count() <= 1;
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    changed || (short.len() >= 3 && long.len() - short.len() <= 2 && long.starts_with(short))
}

fn is_path(key: &str) -> bool {
    key.starts_with("paths.") || key == "competitors.dirs" || key.starts_with(ENGINE_PATHS)
}

fn from_folder(value: Value, folder: &Path) -> Value {
    match value {
        Value::String(path) => Value::String(folder.join(path).display().to_string()),
        Value::Array(paths) => Value::Array(paths.into_iter().map(|p| from_folder(p, folder)).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> Env {
        Env { home: Some("/home/u".into()), ..Env::default() }
    }

    fn with(set: &[&str]) -> anyhow::Result<Loaded> {
        load(&env(), &Request { set: set.iter().map(|s| (*s).to_owned()).collect(), ..Request::default() })
    }

    fn source(loaded: &Loaded, key: &str) -> String {
        loaded.entries().into_iter().find(|e| e.key == key).unwrap().source
    }

    #[test]
    fn later_sources_win_and_are_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memra.toml");
        std::fs::write(&file, "[engine]\nthreads = 3\nclass = \"f32\"\n[paths]\ncache = \"c\"\n").unwrap();
        let request = Request {
            file: Some(file.clone()),
            set: vec!["engine.threads=4".into(), "fault.slow=3%".into()],
            flags: vec![("--data", "paths.data", "/d".into())],
        };
        let loaded = load(&env(), &request).unwrap();
        assert_eq!(loaded.config.engine.threads.get(), 4);
        assert_eq!(loaded.config.engine.class.name(), "f32");
        assert_eq!(loaded.config.fault.slow.fraction(), 0.03);
        assert_eq!(loaded.config.paths.cache, folder.path().join("c"));
        assert_eq!(loaded.config.paths.boards, Path::new("/d/boards"));
        assert_eq!(source(&loaded, "engine.threads"), "--set");
        assert_eq!(source(&loaded, "engine.class"), file.display().to_string());
        assert_eq!(source(&loaded, "paths.data"), "--data");
        assert_eq!(source(&loaded, "paths.boards"), "default (in paths.data)");
        assert_eq!(source(&loaded, "engine.kv"), "default");
    }

    #[test]
    fn another_process_gets_the_same_configuration() {
        let set = [
            "competitors.dirs=[\"/a b\", \"c\"]",
            "competitors.paths.llama.cpp=/opt/llama-bench",
            "fault.wrong=matmul",
            "engine.context=99",
        ];
        let first = with(&set).unwrap();
        assert_eq!(first.config.competitors.paths["llama.cpp"], Path::new("/opt/llama-bench"));
        let arguments = first.as_arguments();
        assert!(arguments.iter().step_by(2).all(|word| word == "--set"));
        let set = arguments.into_iter().skip(1).step_by(2).map(|set| set.into_string().unwrap()).collect();
        let second = load(&env(), &Request { set, ..Request::default() }).unwrap();
        assert_eq!(first.config, second.config);
        let engine = first.as_engine_arguments();
        assert_eq!(engine, ["--set", "engine.context=99", "--set", "fault.wrong=matmul"].map(OsString::from));
    }

    #[test]
    fn mistakes_name_the_key_and_the_way_out() {
        let error = |set: &[&str]| format!("{:#}", with(set).unwrap_err());
        assert!(error(&["engine.thread=2"]).contains("did you mean `engine.threads`"));
        assert!(error(&["competitors.paths.="]).contains("not a configuration key"));
        assert!(error(&["engine=2"]).contains("not a configuration key"));
        assert!(error(&["nonsense.key.deep=1"]).contains("memra config"));
        assert!(error(&["engine.threads=many"]).contains("engine.threads"));
        assert!(error(&["engine.threads=1025"]).contains("at most 1024"));
        assert!(error(&["engine.class=q4"]).contains("engine.class"));
        assert!(error(&["fault.slow=3"]).contains("percent sign"));
        assert!(error(&["engine.threads"]).contains("KEY=VALUE"));
    }

    #[test]
    fn a_checkout_keeps_its_own_data() {
        let inside = Env { checkout: Some("/src/memra".into()), ..env() };
        let loaded = load(&inside, &Request::default()).unwrap();
        assert_eq!(loaded.config.paths.data, Path::new("/src/memra/tune-data"));
        assert_eq!(loaded.config.paths.boards, Path::new("/src/memra/boards"));
        let outside = load(&env(), &Request::default()).unwrap();
        assert_eq!(outside.config.paths.data, Path::new("/home/u/.local/share/memra/tune-data"));
        assert!(load(&Env::default(), &Request::default()).is_err());
    }
}
