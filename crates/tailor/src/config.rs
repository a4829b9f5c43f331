//! The configuration: files, then `TAILOR_*` variables, then flags; later ones override earlier ones. What the values
//! do is decided elsewhere.

mod file;
pub(crate) mod repository;

use crate::settings::{SETTINGS, Scalar, Scope, Settings};
use crate::value::nearest;
use file::FileSettings;
use keeper::program::SYSTEM_CONFIG;
use keeper::{KeepLimits, Own, Policies, RunsToKeep, Vault, Verdicts, stated_windows};
use repository::Owner;
use serde::Deserialize;
use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};
use transcript::policy::ModelWindow;
use watch::{Config, Keeping, Roots};

const PREFIX: &str = "TAILOR_";
/// `TAILOR_CONFIG` names the file that `--config` would.
const CONFIG_VARIABLE: &str = "TAILOR_CONFIG";
/// How similar a variable must be to a known one to count as a typo, from 0 to 1.
const LIKENESS_MIN: f64 = 0.85;
/// Stands for a limit that is off.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The configuration, and where it came from.
pub(crate) struct Loaded {
    file: FileSettings,
    pub(crate) settings: Settings,
    /// All settings, including defaults.
    pub(crate) table: Table,
    pub(crate) files: Vec<PathBuf>,
    /// The one of them that is a repository's.
    repository: Option<PathBuf>,
    /// Unknown variables.
    pub(crate) strays: Vec<UnknownVariable>,
    /// Where in a file each root is named.
    roots_at: Vec<(PathBuf, String)>,
}

/// An unknown variable with our prefix. It may be another program's, so commands other than `config` only mention one
/// that looks like a typo.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownVariable {
    name: String,
    /// The key that was probably intended.
    pub(crate) meant: Option<&'static str>,
}

impl fmt::Display for UnknownVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: no such variable", self.name)?;
        match self.meant {
            Some(key) => write!(f, " (did you mean `{PREFIX}{}`?)", key.to_ascii_uppercase()),
            None => Ok(()),
        }
    }
}

/// Reads everything, or returns all errors. `flags` override everything else.
pub(crate) fn load(
    places: Vec<(PathBuf, Owner)>,
    flags: &[String],
    roots: Option<Value>,
) -> Result<Loaded, Vec<String>> {
    let (mut table, mut files, mut strays, mut wrong) = <(Table, Vec<_>, Vec<_>, Vec<String>)>::default();
    let (mut roots_at, mut repository) = (Vec::new(), None);
    let mut take = |read: Result<Table, Vec<String>>| match read {
        Ok(over) => merge(&mut table, over),
        Err(errors) => wrong.extend(errors),
    };
    for (path, owner) in places {
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let name = path.display().to_string();
                let named = roots_in(&text, &name);
                let read = parse(&text, &name).and_then(|table| allowed(table, owner, &name));
                take(and_also(read, relative(&named)));
                roots_at.extend(named);
                repository = repository.or_else(|| (owner == Owner::Repository).then(|| path.clone()));
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound && owner != Owner::Named => continue,
            Err(cause) => {
                take(Err(vec![format!("{}: could not read the configuration: {cause}", path.display())]));
            }
        }
        files.push(path);
    }
    take(variables(std::env::vars_os(), &mut strays));
    for text in flags {
        take(parse(&quoted(text), &format!("--set {text}")));
    }
    if let Some(roots) = roots {
        table.insert("roots".to_string(), roots);
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let loaded = Loaded::new(table, files, strays).map(|loaded| Loaded { repository, roots_at, ..loaded });
    let loaded = loaded.map_err(|error| vec![explain("configuration", &error, None)])?;
    if let Some(key) = loaded.file.first_key_for_all(&|setting| setting.scope == Scope::Agent) {
        return Err(vec![format!(
            "configuration: `{key}` is a setting of one agent; put it in `[agents.NAME]`"
        )]);
    }
    Ok(loaded)
}

/// A line of a configuration whose value may be text without quotes, as a shell leaves it: `settle=1h`.
fn quoted(line: &str) -> Cow<'_, str> {
    match line.split_once('=') {
        Some((key, text)) if format!("x ={text}").parse::<Table>().is_err() => {
            format!("{key} = {}", Value::String(text.trim().to_string())).into()
        }
        _ => line.into(),
    }
}

/// What was read, if all of it may be in such a file.
fn allowed(table: Table, owner: Owner, name: &str) -> Result<Table, Vec<String>> {
    let file: Result<FileSettings, _> = table.clone().try_into();
    match file.ok().and_then(|file| owner.refusal(&file)) {
        Some(why) => Err(vec![format!("{name}: {why}")]),
        None => Ok(table),
    }
}

/// What was read, unless something else is wrong with it.
fn and_also(read: Result<Table, Vec<String>>, wrong: Vec<String>) -> Result<Table, Vec<String>> {
    match read {
        Ok(table) if wrong.is_empty() => Ok(table),
        Ok(_) => Err(wrong),
        Err(errors) => Err([errors, wrong].concat()),
    }
}

/// Roots that would be others wherever the daemon is started.
fn relative(roots: &[(PathBuf, String)]) -> Vec<String> {
    let relative = roots.iter().filter(|(root, _)| !at_home(root).is_absolute());
    let why = |(root, at): &(PathBuf, String)| {
        format!("{at}: `roots`: `{}` is relative; begin it with `/` or `~/`", root.display())
    };
    relative.map(why).collect()
}

/// The roots that a file names, and where each stands in it.
fn roots_in(text: &str, name: &str) -> Vec<(PathBuf, String)> {
    let (table, _) = DeTable::parse_recoverable(text);
    let roots = table.get_ref().get("roots").and_then(|roots| roots.get_ref().as_array());
    let named = roots.into_iter().flatten().filter_map(|root| Some((root.get_ref().as_str()?, root.span())));
    named
        .map(|(root, at)| (PathBuf::from(root), format!("{name}: line {}", line_at(text, at.start))))
        .collect()
}

fn line_at(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

/// The path of the user's own file, which may not exist.
pub(crate) fn own_file() -> Option<PathBuf> {
    Own::Config.folder().map(|folder| folder.join("config.toml"))
}

/// The files to read, and whose they are. `named` is the file of `--config`.
pub(crate) fn places(named: Option<&Path>) -> Vec<(PathBuf, Owner)> {
    let named = named.map(Path::to_path_buf).or_else(|| std::env::var_os(CONFIG_VARIABLE).map(PathBuf::from));
    if let Some(path) = named {
        return vec![(path, Owner::Named)];
    }
    SYSTEM_CONFIG.map(PathBuf::from).into_iter().chain(own_file()).map(|path| (path, Owner::User)).collect()
}

impl Loaded {
    fn new(
        mut table: Table,
        files: Vec<PathBuf>,
        strays: Vec<UnknownVariable>,
    ) -> Result<Self, toml::de::Error> {
        let file: FileSettings = table.clone().try_into()?;
        let settings = file.over(&Settings::default());
        fill(&mut table, &mut settings.clone());
        Ok(Self { file, settings, table, files, strays, repository: None, roots_at: Vec::new() })
    }

    /// The policies.
    pub(crate) fn policies(&self) -> Policies {
        let agents = self.file.agents.iter().map(|(name, own)| (&name.0, own.0.over(&self.settings)));
        let agents: Vec<(&String, Settings)> = agents.collect();
        let reloading = agents.iter().filter(|(_, own)| own.reloads).map(|(name, _)| (*name).clone());
        let own = agents.iter().map(|(name, own)| ((*name).clone(), own.policy.clone()));
        let windows: Arc<[ModelWindow]> = stated_windows().into();
        let policies = Policies::new(self.settings.policy.clone(), own).reloading(reloading);
        policies.map(|policy| policy.model_windows = Arc::clone(&windows))
    }

    /// The files that were read.
    pub(crate) fn files_in_words(&self) -> String {
        let files: Vec<String> = self.files.iter().map(|path| path.display().to_string()).collect();
        if files.is_empty() { "no file".to_string() } else { files.join(", ") }
    }

    /// Where originals are kept.
    pub(crate) fn vault(&self) -> Result<PathBuf, String> {
        let nowhere =
            "could not find a place for originals: neither XDG_STATE_HOME nor HOME is set (--vault DIR)";
        self.settings.vault.as_deref().map(at_home).ok_or_else(|| nowhere.to_string())
    }

    /// The place of the index of verdicts; `None` if it is switched off, or there is no place for it.
    pub(crate) fn cache(&self, asked: bool) -> Option<PathBuf> {
        if self.settings.cache || asked { Verdicts::default_folder() } else { None }
    }

    /// How long and how much of them.
    pub(crate) fn keep(&self) -> RunsToKeep {
        let RunsToKeep { age, bytes } = self.settings.keep;
        RunsToKeep { age: unless_off(age), bytes: if bytes == 0 { u64::MAX } else { bytes } }
    }

    /// Where is kept what sessions become.
    pub(crate) fn archive(&self) -> Result<PathBuf, String> {
        let nowhere =
            "could not find a place to keep sessions: neither XDG_STATE_HOME nor HOME is set (--archive DIR)";
        self.settings.archive.as_deref().map(at_home).ok_or_else(|| nowhere.to_string())
    }

    /// How long and how much of it.
    pub(crate) fn keep_limits(&self) -> KeepLimits {
        let KeepLimits { age, bytes } = self.settings.keep_limits;
        KeepLimits { age: unless_off(age), bytes: if bytes == 0 { u64::MAX } else { bytes } }
    }

    /// What the daemon keeps, if it does.
    fn keeping(&self) -> Result<Option<Keeping>, String> {
        let keeping = || Ok(Keeping { folder: self.archive()?, limits: self.keep_limits() });
        self.settings.keeping.then(keeping).transpose()
    }

    /// The socket for `tailor status`.
    pub(crate) fn socket(&self) -> PathBuf {
        at_home(&self.settings.socket())
    }

    fn metrics_textfile(&self) -> Option<PathBuf> {
        self.settings.metrics_textfile.as_deref().map(at_home)
    }

    /// Valid settings that the daemon cannot use: all of them.
    pub(crate) fn senseless(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.settings.roots.as_ref().is_some_and(Vec::is_empty) {
            let why = "configuration: `roots` is empty; remove it to watch the folders of known agents";
            wrong.push(why.to_string());
        }
        // The file is replaced each time, which would remove a pipe or a device.
        if let Some(path) = self.metrics_textfile().filter(|path| path.exists() && !path.is_file()) {
            let path = path.display();
            wrong.push(format!(
                "configuration: `metrics_textfile`: {path} exists and is not a regular file; name another"
            ));
        }
        wrong.extend(self.vault().err());
        wrong
    }

    /// Roots that are not there, which the daemon waits for: they may be mistyped.
    pub(crate) fn missing_roots(&self) -> impl Iterator<Item = String> {
        let missing = self.settings.roots.iter().flatten().filter(|root| !at_home(root).exists());
        missing.map(|root| {
            let at = self.roots_at.iter().rfind(|(named, _)| named == root).map(|(_, at)| at.as_str());
            let (at, root) = (at.unwrap_or("configuration"), root.display());
            format!("{at}: `roots`: {root} does not exist; nothing is watched there until it does")
        })
    }

    /// What the daemon is asked to do.
    pub(crate) fn daemon(&self) -> Result<Config, String> {
        let mut wrong = self.senseless();
        let of_checks = self.file.first_key_for_all(&|setting| setting.scope == Scope::Repository);
        wrong.extend(of_checks.map(|key| {
            format!("configuration: `{key}` is for `scan` and `fix`; the daemon leaves nothing out")
        }));
        if !wrong.is_empty() {
            return Err(wrong.join("; "));
        }
        let settings = &self.settings;
        let vault = self.vault()?;
        let roots = match &settings.roots {
            Some(roots) => Roots::These(roots.iter().map(|root| at_home(root)).collect()),
            None => Roots::Known,
        };
        let metrics_textfile = self.metrics_textfile();
        Ok(Config {
            roots,
            mode: settings.mode,
            stores: settings.stores.unwrap_or(settings.mode),
            policy: self.policies(),
            settle: settings.settle,
            settle_stale: settings.settle_stale,
            memory_settle: settings.memory_settle,
            recover: settings.recover,
            worth: settings.worth,
            rescan: unless_off(settings.rescan),
            keep: self.keep(),
            keeping: self.keeping()?,
            cache: self.cache(false),
            listen: settings.listen.clone(),
            metrics_textfile,
            socket: self.socket(),
            // Claims on roots must be in one place for all commands, wherever originals are kept.
            state: Vault::default_root().unwrap_or_else(|| vault.clone()).join("watch"),
            vault: Vault::new(vault),
        })
    }
}

/// 0 switches a limit off.
fn unless_off(time: Duration) -> Duration {
    if time.is_zero() { NEVER } else { time }
}

/// Parses a complete configuration, or returns all errors.
fn parse(text: &str, name: &str) -> Result<Table, Vec<String>> {
    let explain = |error: &toml::de::Error| explain(name, error, Some(text));
    let (mut table, errors) = DeTable::parse_recoverable(text);
    let line = |error: &toml::de::Error| error.span().map(|at| line_at(text, at.start));
    let mut wrong: Vec<_> = errors.iter().map(|error| (line(error), explain(error))).collect();
    while let Err(error) = FileSettings::deserialize(toml::Deserializer::from(table.clone())) {
        // What is left of a line that is no TOML is not judged.
        if !errors.iter().any(|broken| line(broken) == line(&error)) {
            wrong.push((line(&error), explain(&error)));
        }
        if !error.span().is_some_and(|at| take_out(table.get_mut(), &at)) {
            break;
        }
    }
    if wrong.is_empty() {
        return toml::from_str(text).map_err(|error| vec![explain(&error)]);
    }
    wrong.sort_by_key(|(line, _)| *line);
    Err(wrong.into_iter().map(|(_, why)| why).collect())
}

/// Removes the innermost key whose name or value is at this place in the text.
fn take_out(table: &mut DeTable<'_>, at: &Range<usize>) -> bool {
    let in_table = |(_, value): (_, &mut Spanned<DeValue<'_>>)| match value.get_mut() {
        DeValue::Table(below) => take_out(below, at),
        _ => false,
    };
    if table.iter_mut().any(in_table) {
        return true;
    }
    let has = |span: Range<usize>| span.start <= at.start && at.end <= span.end;
    let key = table.iter().find(|(key, value)| has(key.span()) || has(value.span()));
    let key = key.map(|(key, _)| key.clone());
    key.is_some_and(|key| table.remove(&key).is_some())
}

/// The error, its place, and a suggestion.
fn explain(name: &str, error: &toml::de::Error, text: Option<&str>) -> String {
    let message = error.message().replace('\n', "; ");
    let line = error.span().zip(text).map(|(span, text)| format!("line {}: ", line_at(text, span.start)));
    let hint = if message.contains("unknown") { meant(&message) } else { None };
    // The list of all valid keys is too long to read.
    let message = match (hint, message.split_once(", expected")) {
        (Some(_), Some((what, _))) => what.replace("unknown field", "unknown key"),
        _ => message.clone(),
    };
    let hint = hint.map(|hint| format!(" (did you mean `{hint}`?)")).unwrap_or_default();
    format!("{name}: could not understand the configuration: {}{message}{hint}", line.unwrap_or_default())
}

/// Of the names that a message offers, the one most similar to the invalid name, which comes first.
fn meant(message: &str) -> Option<&str> {
    let mut names = message.split('`').skip(1).step_by(2);
    let written = names.next()?;
    nearest(written, names).map(|(name, _)| name)
}

/// Merges tables; replaces other values.
fn merge(table: &mut Table, over: Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// Adds the defaults of settings that are absent.
fn fill(table: &mut Table, settings: &mut Settings) {
    for setting in SETTINGS.iter().filter(|setting| setting.is_printed()) {
        let Some(value) = setting.kind.print(settings) else { continue };
        let mut names: Vec<&str> = setting.key.split('.').collect();
        let (mut place, last) = (&mut *table, names.pop().unwrap_or(setting.key));
        for name in names {
            let below = place.entry(name).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(below) = below else { return };
            place = below;
        }
        place.entry(last).or_insert(value);
    }
}

/// Reads variables, which are keys in capitals.
fn variables(
    all: impl Iterator<Item = (OsString, OsString)>,
    strays: &mut Vec<UnknownVariable>,
) -> Result<Table, Vec<String>> {
    let (mut table, mut wrong) = (Table::new(), Vec::new());
    for (name, value) in all {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX) && *name != CONFIG_VARIABLE)
        else {
            continue;
        };
        let key = name[PREFIX.len()..].to_ascii_lowercase();
        let scalars = SETTINGS.iter().filter_map(|setting| Some((setting.key, setting.scalar()?)));
        let Some((key, kind)) = scalars.clone().find(|(known, _)| *known == key) else {
            let meant = nearest(&key, scalars.map(|(known, _)| known));
            let meant = meant.filter(|(_, likeness)| *likeness >= LIKENESS_MIN);
            strays.push(UnknownVariable { name: name.to_string(), meant: meant.map(|(key, _)| key) });
            continue;
        };
        let Some(text) = value.to_str() else {
            wrong.push(format!("{name}: could not read it: it is not UTF-8"));
            continue;
        };
        let value = match kind {
            Scalar::List => {
                let paths = text.split(':').filter(|path| !path.is_empty());
                Value::Array(paths.map(|path| Value::String(path.to_string())).collect())
            }
            Scalar::Text => Value::String(text.to_string()),
            Scalar::Truth => text.parse().map_or_else(|_| Value::String(text.to_string()), Value::Boolean),
            Scalar::Number => text.parse().map_or_else(|_| Value::String(text.to_string()), Value::Integer),
        };
        let one = Table::from_iter([(key.to_string(), value)]);
        let checked: Result<FileSettings, _> = one.clone().try_into();
        match checked {
            Ok(_) => merge(&mut table, one),
            Err(error) => wrong.push(explain(name, &error, None)),
        }
    }
    if wrong.is_empty() { Ok(table) } else { Err(wrong) }
}

/// Replaces `~` by the current user's home folder.
fn at_home(path: &Path) -> PathBuf {
    let below = path.strip_prefix("~").ok();
    below.and_then(|below| Some(std::env::home_dir()?.join(below))).unwrap_or_else(|| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SettingKind;
    use crate::value::profile as find_profile;
    use spans::literal::Unit;
    use transcript::Policy;
    use transcript::format::FORMATS;
    use transcript::policy::{Selection, SignedThinking, Stale};
    use watch::WatchMode;

    #[track_caller]
    fn wrong(text: &str) -> String {
        parse(text, "c.toml").map(|_| ()).unwrap_err().join("\n")
    }

    fn loaded(table: Table) -> Loaded {
        Loaded::new(table, Vec::new(), Vec::new()).unwrap()
    }

    fn read(text: &str) -> Result<Config, String> {
        loaded(parse(text, "c.toml").map_err(|wrong| wrong.join("\n"))?).daemon()
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        for (text, says) in [
            ("settel = 5", "line 1: unknown key `settel` (did you mean `settle`?)"),
            (
                "\nresult_char_max = 5",
                "line 2: unknown key `result_char_max` (did you mean `result_chars_max`?)",
            ),
            ("[originals.keep]\nday = 5", "did you mean `days`?"),
            ("[agents.pi]\nturn_char_max = 5", "did you mean `turn_chars_max`?"),
            ("[tools.bash]\nresult_chars = 5", "did you mean `result_chars_max`?"),
            ("mode = \"enforced\"", "did you mean `enforce`?"),
            ("thinking = \"stripp\"", "did you mean `strip`?"),
            ("[stale]\nshorten_turn = 5", "did you mean `shorten_turns`?"),
            ("profile = \"chatcl\"", "no such profile; there are default, chatcli"),
            ("[agents.claude]", "line 1: there is no agent `claude` (did you mean `claude-code`?)"),
            (
                "\n\n[agents.pi]\nsettle = 5",
                "line 3: `settle` in the table of an agent applies to all agents",
            ),
        ] {
            let wrong = wrong(text);
            assert!(wrong.contains(says), "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line) in [
            ("[tools.bash]\nresult_chars_max = \"x\"", 2),
            ("[tools.bash]\n\nresult_chars = 5", 3),
            ("[tools.bash]\nresult_chars_max = 5\n[tools]\nkeep = [\n 1]", 5),
            ("[tools]\nonly = \"bash\"", 2),
            ("[agents.pi]\n[agents.pi.tools.bash]\nresult_chars_max = -1", 3),
            ("settle = 5\n[agents.claude]\nresult_chars_max = 1", 2),
            ("[agents.pi]\nresult_chars_max = 1\nselect = [\"P1\", \"P99\"]", 3),
            ("[originals.keep]\ndays = 1\nbytes = \"5 lightyears\"", 3),
            ("[crowded]\ncache_ttl = true", 2),
            ("[stale]\n\n\nshorten_turns = \"x\"", 4),
        ] {
            let wrong = wrong(text);
            assert!(wrong.starts_with("c.toml: ") && wrong.contains(&format!(": line {line}: ")), "{wrong}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let told = wrong(
            "mod = \"enforce\"\nsettle = 5\nresult_chars_max = -1\nroots = [\n  1,\n]\n[stale]\nhead_char = 5\n\
             tail_chars = \"x\"\n[agents.claude]\nresult_chars_max = 1\n[agents.pi]\nturn_char_max = 2\n",
        );
        let lines: Vec<&str> = told.lines().collect();
        let starts =
            ["1: unknown key `mod`", "3: ", "5: ", "8: unknown key `head_char`", "9: ", "10: ", "13: "];
        assert_eq!(lines.len(), starts.len(), "{told}");
        for start in starts {
            let start = format!("c.toml: could not understand the configuration: line {start}");
            assert!(lines.iter().any(|line| line.starts_with(&start)), "{start} is not in\n{told}");
        }
        let broken = wrong("settle = = 5\nlisten = \n[stale\n");
        assert!(broken.contains("line 1: ") && broken.contains("line 2: "), "{broken}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            "settle = -1",
            "settle = \"5 lightyears\"",
            "listen = \"0.0.0.0:80\"",
            "result_chars_max = -3",
            "x",
        ] {
            assert!(wrong(text).contains("could not understand"), "{text}");
        }
        assert!(read("roots = []").is_err());
        let device = read("metrics_textfile = \"/dev/null\"").unwrap_err();
        assert!(
            device.contains("`metrics_textfile`: /dev/null exists and is not a regular file"),
            "{device}"
        );
    }

    #[test]
    fn tables_of_agents_and_tools_override() {
        let config = read(
            "result_chars_max = 100\n[tools]\nkeep = [\"read\"]\n[tools.bash]\nresult_chars_max = 7\n\
             [agents.pi]\nresult_chars_max = 50\n[agents.pi.tools.grep]\nresult_chars_max = 0\n",
        )
        .unwrap();
        let limit =
            |policy: &Policy, tool: &str| policy.caps_for(tool.as_bytes(), false)[1].map(|cap| cap.chars_max);
        let all = config.policy.all();
        assert_eq!([limit(all, "ls"), limit(all, "bash"), limit(all, "read")], [Some(100), Some(7), None]);
        let pi = FORMATS.iter().find(|format| format.name == "pi");
        let pi = config.policy.for_format(pi.copied());
        assert_eq!([limit(pi, "ls"), limit(pi, "bash"), limit(pi, "grep")], [Some(50), Some(7), None]);
    }

    #[test]
    fn a_profile_is_where_numbers_start_from() {
        let text = "profile = \"chatcli\"\nresult_chars_max = 7\n[stale]\nclear_turns = 9\nkeep = []\n\
                    [agents.pi]\nprofile = \"openclaw-5057\"\n[agents.pi.crowded]\ncache_ttl = \"2min\"\n\
                    [agents.claude-code]\nturn_chars_max = 8\n";
        let loaded = loaded(parse(text, "c.toml").unwrap());
        assert_eq!(loaded.table["turn_chars_max"].as_integer(), Some(200_000));
        let policies = loaded.policies();
        let policy = policies.all();
        assert_eq!((policy.unit, policy.result_chars_max, policy.turn_chars_max), (Unit::Bytes, 7, 200_000));
        assert_eq!((policy.stale.shorten_at, policy.stale.clear_at), (2, 9));
        assert!(policy.stale.tools_keep.is_empty());
        let of = |name: &str| policies.for_format(FORMATS.iter().find(|format| format.name == name).copied());
        let claude = of("claude-code");
        assert_eq!((claude.result_chars_max, claude.turn_chars_max, claude.stale.clear_at), (7, 8, 9));
        let pi = of("pi");
        assert_eq!((pi.result_chars_max, pi.turn_chars_max, pi.stale.clear_at), (50_000, 0, 0));
        assert_eq!((pi.crowded.trim_percent, pi.crowded.cache_ttl_ms), (30, 120_000));
    }

    #[test]
    fn a_profile_says_nothing_of_thinking_and_of_which_rules_act() {
        let text = "thinking = \"strip\"\nignore = [\"S5\"]\n[agents.pi]\nprofile = \"chatcli\"\n\
                    turn_chars_max = 9\n[agents.pi.stale]\nclear_turns = 0\n";
        let config = read(text).unwrap();
        let chatcli = find_profile("chatcli").unwrap().policy();
        let wanted = Policy {
            turn_chars_max: 9,
            thinking: SignedThinking::Strip,
            stale: Stale { clear_at: 0, ..chatcli.stale.clone() },
            selection: Selection {
                allowed_by_profile: chatcli.selection.allowed_by_profile.clone(),
                ..config.policy.all().selection.clone()
            },
            ..chatcli
        };
        assert_eq!(config.policy.all().selection.ignore, ["S5"]);
        let pi = FORMATS.iter().find(|format| format.name == "pi");
        assert_eq!(**config.policy.for_format(pi.copied()), wanted);
    }

    /// A row copied from another one, with its place not adapted, would change the other setting.
    #[test]
    fn each_number_has_its_own_place() {
        let is_number = |kind| {
            matches!(
                kind,
                SettingKind::Number(_)
                    | SettingKind::Size(_)
                    | SettingKind::Time(_)
                    | SettingKind::Millis(_)
                    | SettingKind::Days(_)
            )
        };
        let numbers = || SETTINGS.iter().zip(1..).filter(|(setting, _)| is_number(setting.kind));
        let lines: Vec<String> = numbers().map(|(row, number)| format!("{} = {number}", row.key)).collect();
        let mut settings = loaded(parse(&lines.join("\n"), "c.toml").unwrap()).settings;
        for (setting, number) in numbers() {
            assert_eq!(setting.kind.print(&mut settings), Some(Value::Integer(number)), "{}", setting.key);
        }
    }

    #[test]
    fn zero_switches_a_limit_off() {
        let config = read("rescan = 0\n[originals.keep]\ndays = 0\nbytes = 0\n").unwrap();
        assert_eq!((config.rescan, config.keep), (NEVER, RunsToKeep { age: NEVER, bytes: u64::MAX }));
    }

    #[test]
    fn variables_are_keys_in_capitals() {
        let mut strays = Vec::new();
        let all = [("TAILOR_SETTLE", "7"), ("TAILOR_ROOTS", "/a:/b"), ("HOME", "/h")];
        let mistyped = [
            ("TAILOR_SETTEL", "TAILOR_SETTLE"),
            ("TAILOR_RESULT_CHARS", "TAILOR_RESULT_CHARS_MAX"),
            ("TAILOR_ROOT", "TAILOR_ROOTS"),
        ];
        let others =
            ["TAILOR_CORPUS", "TAILOR_LIVE_SECONDS", "TAILOR_LIVE_PROGRAM", "TAILOR_CHUNK", "TAILOR_BINARY"];
        let all = all.into_iter().chain(mistyped).chain(others.map(|name| (name, "1")));
        let all = all.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let table = variables(all, &mut strays).unwrap();
        assert_eq!(table["settle"].as_integer(), Some(7));
        assert_eq!(table["roots"].as_array().map(Vec::len), Some(2));
        let said = strays.iter().map(ToString::to_string);
        let mistyped =
            mistyped.map(|(name, meant)| format!("{name}: no such variable (did you mean `{meant}`?)"));
        let others = others.map(|name| format!("{name}: no such variable"));
        assert_eq!(said.collect::<Vec<_>>(), [&mistyped[..], &others[..]].concat());
        let bad = [(OsString::from("TAILOR_MODE"), OsString::from("on"))];
        assert!(variables(bad.into_iter(), &mut strays).is_err());
    }

    #[test]
    fn the_defaults_are_a_configuration() {
        let printed = loaded(Table::new()).table;
        let config = loaded(printed).daemon().unwrap();
        assert_eq!(
            (config.mode, &**config.policy.all(), config.keep),
            (WatchMode::Observe, &Policy::default(), RunsToKeep::default())
        );
    }
}
