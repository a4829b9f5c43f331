//! `tailor explain`: what a rule means; what an API error is about, which session has it and which lines cause it; or
//! what a profile does.

use super::gone::kept_by_id;
use super::resume::in_folder;
use super::search::{ErrorSearch, Fit, is_length};
use super::{CommandResult, doctor, ended, output_closed, unread};
use crate::amount::{age, grouped, percent, plural};
use crate::args::ExplainArgs;
use crate::place::{portable_text, shown, shown_word};
use crate::remedy;
use crate::report::FindingReport;
use crate::say::{eprint_message, is_quiet, print_json};
use crate::sessions::{ListedSession, Looks, candidates, describe_error, is_refused, path_or_id};
use crate::status::ExitStatus;
use crate::table::TableWriter;
use crate::terminal::{Screen, plain, shell_word};
use crate::value::{or_meant, rules};
use keeper::{
    Policies, Stop, Vault, is_same, is_stored, known_roots, read, read_to_examine, recovered_from, store_file,
};
use serde::Serialize;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use transcript::finding::{Safety, Severity};
use transcript::overflow::last_error;
use transcript::profile::{self, PROFILES, Profile};
use transcript::refusal::{self, Blame, FAMILIES, Family};
use transcript::request::{Blame as At, blame};
use transcript::rule::{self, RULES, Rule};
use transcript::{Examination, Fault, Finding, Reading, Situation, examine_read};

/// How much of a title is shown.
const TITLE_COLUMNS: usize = 60;
/// How many findings are listed.
const FINDINGS_MAX: usize = 10;

/// How much of standard input is read: errors are shorter.
const STDIN_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn run(mut explain: ExplainArgs) -> CommandResult {
    let file = file_of(&mut explain)?;
    if explain.what.as_deref() == Some("-") {
        let mut text = Vec::new();
        let read = io::stdin().lock().take(STDIN_BYTES_MAX).read_to_end(&mut text);
        read.map_err(|error| format!("standard input: could not read the error: {error}"))?;
        explain.what = Some(String::from_utf8_lossy(&text).trim().to_string());
    }
    let file = match (file, &explain.what) {
        (None, Some(word)) => match session_alone(word)? {
            Some(path) => {
                explain.what = Some(recorded(&path)?);
                Some(path)
            }
            None => None,
        },
        (file, _) => file,
    };
    let mut ask = Ask { explain: &explain, file, answer: ExplainLine::default() };
    let status = ended(answer(&mut ask));
    let prints = ask.is_json() && ask.answer.kind == KIND;
    Ok(if prints { status.max(print_json(&ask.answer)) } else { status })
}

/// The session that the only word of the command line names, if it is neither a code nor an error.
fn session_alone(word: &str) -> Result<Option<PathBuf>, String> {
    let is_name = rule::find(word).is_some() || profile::find(word).is_some();
    if is_name || FAMILIES.iter().any(|family| family.has(word)) {
        return Ok(None);
    }
    let path = path_or_id(word.into())?;
    Ok((path.is_file() || is_stored(&path)).then_some(path))
}

/// The error with which the last request of a session failed.
fn recorded(path: &Path) -> Result<String, String> {
    let said = read(path, None, |source| last_error(&Reading::new(source)?));
    let file = shown_word(path);
    match said {
        Ok(Some(said)) => Ok(said),
        Ok(None) => Err(format!(
            "{file}: its last request did not fail, or its agent records no errors. Pass the text of the error before the \
             file: tailor explain 'ERROR TEXT' {file}; or check the file for everything: tailor scan {file}"
        )),
        Err(Stop::Failed(error)) => Err(describe_error(path, &error)),
        Err(stop) => Err(format!("{file}: could not look for an error in it: {stop}")),
    }
}

/// Takes the session out of the words of the command line. The others are one text.
fn file_of(explain: &mut ExplainArgs) -> Result<Option<PathBuf>, String> {
    let (Some(what), Some(last)) = (&mut explain.what, explain.rest.pop()) else { return Ok(None) };
    // `explain FILE 'ERROR TEXT'` has its arguments swapped.
    if Path::new(&what).exists() && !Path::new(&last).exists() && explain.rest.is_empty() {
        let text = last.to_string_lossy().into_owned();
        return Ok(Some(PathBuf::from(std::mem::replace(what, text))));
    }
    let is_whole = what.contains(char::is_whitespace) || what == "-" || rule::find(what).is_some();
    let is_path = |text: &str| text.contains(['/', '\\']) || text.contains(".jsonl");
    let file = path_or_id(last.clone())?;
    let is_file = file.exists() || file.as_os_str() != last || last.to_str().is_none_or(is_path);
    let is_file = is_file || is_whole && explain.rest.is_empty();
    let words = explain.rest.drain(..).chain((!is_file).then_some(last));
    for word in words {
        *what += " ";
        *what += &word.to_string_lossy();
    }
    Ok(is_file.then_some(file))
}

/// What is asked, and what is answered to a program.
struct Ask<'e> {
    explain: &'e ExplainArgs,
    /// The session, or a folder of sessions.
    file: Option<PathBuf>,
    answer: ExplainLine,
}

impl Ask<'_> {
    fn is_json(&self) -> bool {
        self.explain.json.is_json()
    }

    /// Prints lines for people, as wide as the screen.
    fn say(&self, text: &str) {
        if !self.is_json() {
            print_lines(text);
        }
    }

    /// Prints a line for people as it is.
    fn whole(&self, text: &str) {
        if !self.is_json() {
            println!("{text}");
        }
    }
}

/// What the line of `--json` about an error, or about a session, is called.
const KIND: &str = "explanation";

/// That line.
#[derive(Default, Serialize)]
struct ExplainLine {
    #[serde(rename = "type")]
    kind: &'static str,
    /// What the error is about; absent if nobody knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'static str>,
    codes: Vec<&'static str>,
    /// What to do about it in general.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The session that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The lines that the error names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    named_lines: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<FindingReport>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_tokens: Option<u64>,
    /// What to do about this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Repairs this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// Goes on with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<String>,
}

/// The line of `--json` about a rule.
#[derive(Serialize)]
struct RuleLine {
    #[serde(rename = "type")]
    kind: &'static str,
    code: &'static str,
    rule: &'static str,
    what: &'static str,
    why: &'static str,
    remedy: &'static str,
    source: &'static str,
}

impl RuleLine {
    fn new(rule: &Rule) -> Self {
        let help = rule.help();
        let (what, why, remedy, source) = (help.what, help.why, help.fix, help.source);
        Self { kind: "rule", code: rule.code(), rule: rule.name(), what, why, remedy, source }
    }
}

/// The line of `--json` about a family of errors.
#[derive(Serialize)]
struct FamilyLine {
    #[serde(rename = "type")]
    kind: &'static str,
    family: &'static str,
    what: &'static str,
    codes: &'static [&'static str],
    about_session: bool,
    source: &'static str,
}

/// What to do about an error in a session.
#[derive(Default)]
struct Advice {
    /// What the command does, and the command.
    run: Option<(&'static str, String)>,
    /// What else there is to say.
    text: String,
    /// Whether the session can be gone on with afterwards.
    goes_on: bool,
}

impl Advice {
    fn of_text(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    fn of_command(does: &'static str, command: String) -> Self {
        Self { run: Some((does, command)), goes_on: true, ..Self::default() }
    }

    fn shown(&self) -> String {
        let run = self.run.as_ref().map(|(does, command)| format!("{does}, run: {command}"));
        paragraphs(&[run.as_deref().unwrap_or_default(), &self.text])
    }
}

/// The line of `--json` about a profile.
#[derive(Serialize)]
struct ProfileLine {
    #[serde(rename = "type")]
    kind: &'static str,
    profile: &'static str,
    what: &'static str,
    source: &'static str,
    reproduces: &'static str,
}

fn answer(ask: &mut Ask<'_>) -> CommandResult {
    let explain = ask.explain;
    if explain.list {
        list(ask, |_| true);
        return Ok(ExitStatus::Clean);
    }
    let Some(what) = &explain.what else {
        let mut rules: Vec<&Rule> = RULES.to_vec();
        rules.sort_by_key(|rule| {
            let (letter, number) = rule.code().split_at(1);
            (letter, number.parse::<u32>().unwrap_or(0))
        });
        for rule in rules {
            if ask.is_json() {
                print_json(&RuleLine::new(rule));
            }
            ask.say(&format!("{:3} {:26} {}", rule.code(), rule.name(), rule.help().what));
        }
        return Ok(ExitStatus::Clean);
    };
    if let Some(profile) = profile::find(what) {
        let Profile { name, what, source, version, .. } = *profile;
        if ask.is_json() {
            return Ok(print_json(&ProfileLine {
                kind: "profile",
                profile: name,
                what,
                source,
                reproduces: version,
            }));
        }
        print_lines(&format!("{name}\n\n{what}\n\nReproduces: {version}\nSource: {source}"));
    } else if let Some(rule) = rule::find(what) {
        describe(rule, ask);
        if let Some(path) = &ask.file.clone() {
            ask.whole("");
            let none = format!(
                "{} is not found in this file. Check it for everything: tailor scan {}",
                rule.code(),
                shown_word(path)
            );
            let is_it = |finding: &Finding| finding.rule.code() == rule.code();
            ask.answer.kind = KIND;
            ask.answer.codes = vec![rule.code()];
            return in_file(path, "", ask, None, &is_it, &|found| {
                settles(&found.findings, path, "").unwrap_or_else(|| Advice::of_text(none.clone()))
            });
        }
    } else if FAMILIES.iter().any(|family| family.has(what)) {
        // Not a rule: what locks, disks, databases and other providers do to a session.
        list(ask, |family| family.has(what));
    } else {
        return match refusal::find(what) {
            Some(known) if known.blame != Blame::Untold => error(known, what, ask),
            known => unknown(known, what, ask),
        };
    }
    Ok(ExitStatus::Clean)
}

/// Prints families of errors that are known.
fn list(ask: &Ask<'_>, is_listed: impl Fn(&Family) -> bool) {
    for family in FAMILIES.iter().filter(|family| is_listed(family)) {
        if ask.is_json() {
            let Family { name, what, codes, source, blame, .. } = *family;
            let about_session = blame == Blame::Session;
            print_json(&FamilyLine { kind: "family", family: name, what, codes, about_session, source });
        }
        let about = match family.blame {
            Blame::Session => family.codes.join(" "),
            Blame::Elsewhere => "not the session".to_string(),
            Blame::Untold => "the text does not tell".to_string(),
        };
        ask.say(&format!("{:18} {} ({about})", family.name, family.what));
    }
}

fn describe(rule: &Rule, ask: &Ask<'_>) {
    if ask.is_json() {
        print_json(&RuleLine::new(rule));
        return;
    }
    let help = rule.help();
    println!("{} {}", rule.code(), rule.name());
    for (name, text) in [("", help.what), ("Why: ", help.why), ("Fix: ", help.fix), ("Source: ", help.source)]
    {
        println!("\n{}", Screen::of_stdout().fit(&format!("{name}{text}")));
    }
}

/// Neither a code, nor an error that says what is wrong: what to do then.
fn unknown(known: Option<&'static Family>, what: &str, ask: &mut Ask<'_>) -> CommandResult {
    ask.answer.kind = KIND;
    let file = ask.file.clone();
    let file = file.as_deref();
    if let Some(known) = known {
        ask.answer.what = Some(known.what);
        ask.answer.remedy = Some(known.advice.to_string());
        // A database is asked itself.
        let advice = if file.is_some_and(|file| store_file(file).is_some()) { "" } else { known.advice };
        ask.say(&paragraphs(&[known.what, advice]));
    } else if what.trim().is_empty() {
        eprint_message("the text is empty: pass the whole text of an error");
    // A text with a space is not a name.
    } else if what.contains(char::is_whitespace) {
        let scan = match file {
            Some(_) => "If the scan below",
            None => "`tailor scan FILE` checks a session whatever the error is; if it",
        };
        let report = "finds nothing and the session still fails, please report the error text";
        eprint_message(&format!("I don't recognise this error message. {scan} {report}"));
    } else {
        let profiles = PROFILES.iter().map(|profile| profile.name);
        let names: Vec<&str> = rules().into_iter().chain(profiles).collect();
        let message = format!("{what}: no such rule (tailor explain lists them), nor a known error");
        eprint_message(&or_meant(message, what, &names));
    }
    if let Some(path) = file {
        // It is unknown whether one of these is the cause, so no repair is proposed.
        let is_error = |finding: &Finding| finding.severity == Severity::Error;
        in_file(
            path,
            what,
            ask,
            Some("errors that a scan finds"),
            &is_error,
            &|found| match &found.findings[..] {
                [] => Advice::of_text("No errors found.".to_string()),
                _ => Advice::default(),
            },
        )?;
    } else if !ask.is_json() && (known.is_some() || what.contains(char::is_whitespace)) {
        let printed = doctor::print_stuck(&ask.explain.config.load()?);
        printed.map_err(|error| output_closed("standard output", &error))?;
    }
    Ok(ExitStatus::Error)
}

fn error(known: &'static Family, text: &str, ask: &mut Ask<'_>) -> CommandResult {
    ask.answer = ExplainLine {
        kind: KIND,
        what: Some(known.what),
        codes: known.codes.to_vec(),
        remedy: Some(paragraphs(&[known.fix, known.advice])),
        ..ExplainLine::default()
    };
    let rules: Vec<&Rule> = known.codes.iter().filter_map(|code| rule::find(code)).collect();
    let names: Vec<String> = rules.iter().map(|rule| format!("{} {}", rule.code(), rule.name())).collect();
    let names = names.join(", ");
    if known.blame == Blame::Elsewhere {
        let fix = if known.fix.is_empty() { "The session has nothing to do with it." } else { known.fix };
        ask.say(&format!("{} {fix} {}", known.what, known.advice));
        return Ok(ExitStatus::Clean);
    }
    ask.say(&format!("{}\n\n", known.what));
    if !rules.is_empty() {
        ask.say(&format!("Rules: {names}\n\n"));
    }
    let given = ask.file.clone();
    let folder = given.as_ref().filter(|file| file.is_dir());
    let searched;
    let path = match (&given, folder) {
        (Some(file), None) => file,
        _ if rules.is_empty() => {
            ask.say(&paragraphs(&[known.fix, known.advice]));
            return Ok(ExitStatus::Clean);
        }
        (_, folder) => {
            let found = match by_id(known, text, ask, folder)? {
                Named::Here(path) => Some(path),
                Named::Missing => None,
                Named::No => search(known, text, ask, folder)?,
            };
            let Some(path) = found else { return Ok(ExitStatus::Clean) };
            searched = path;
            &searched
        }
    };
    // Whatever is wrong with the session that is said to be missing may be why.
    let is_named = given.as_ref().is_some_and(|file| !file.is_dir()) || session_ids(text).next().is_some();
    let is_lost = known.name == "lost" && is_named;
    let is_about = |finding: &Finding| {
        known.codes.contains(&finding.rule.code()) || (is_lost && finding.severity >= Severity::Warning)
    };
    if is_length(text) {
        return too_long(path, text, ask, &is_about);
    }
    in_file(path, text, ask, None, &is_about, &|found| {
        let file = shown_word(path);
        let settled = match settles(&found.findings, path, text) {
            _ if rules.is_empty() => Advice::of_text(known.fix.to_string()),
            None => Advice::of_text(format!(
                "Not found in this file: {names}.\nCheck it for everything: tailor scan {file}\nSearch all sessions: leave the file out."
            )),
            Some(settled) => settled,
        };
        let text = paragraphs(&[&settled.text, &known.advice.replace("FILE", &file)]);
        Advice { text, ..settled }
    })
}

/// Advice for a session that was recovered after the error.
const SHORTENED: &str = "The session was shortened since this error, and fits now.";

/// What to do about a session that is too long.
fn too_long(
    path: &Path,
    text: &str,
    ask: &mut Ask<'_>,
    is_about: &dyn Fn(&Finding) -> bool,
) -> CommandResult {
    let vault = ask.explain.config.load().and_then(|config| config.vault()).ok().map(Vault::new);
    let from = |vault: &Vault| recovered_from(vault, &path.canonicalize().ok()?, text).ok();
    let was_recovered = vault.as_ref().and_then(from).unwrap_or(false);
    in_file(path, text, ask, None, is_about, &|ErrorSubject { findings, looked, window, said }| {
        let is_over = looked.context_tokens.tokens > *window;
        let is_refused = is_refused(looked, path, vault.as_ref());
        let is_met = was_recovered || said.as_ref().is_some_and(|said| is_same(said, text));
        if !is_over && !is_refused && is_met {
            return Advice { goes_on: true, ..Advice::of_text(SHORTENED.to_string()) };
        }
        let is_known = is_over || is_refused;
        let error = if is_known { String::new() } else { format!("--error {} ", shell_word(text)) };
        // It is often not enough to cut what is too long by itself.
        let fewer = remedy::command(findings, path, text)
            .map(|command| format!("To shorten only long results, run: {command}"));
        let file = shown_word(path);
        let recover = Advice::of_command("To make it fit", format!("tailor recover {error}{file}"));
        Advice { text: fewer.unwrap_or_default(), ..recover }
    })
}

/// Whether an error names a session by its id.
enum Named {
    Here(PathBuf),
    /// It does, and no session here has that id.
    Missing,
    No,
}

/// The session whose id an error names. Where it says that this very session is not found, no other one is meant.
fn by_id(known: &Family, text: &str, ask: &mut Ask<'_>, folder: Option<&PathBuf>) -> Result<Named, String> {
    let ids: Vec<&str> = session_ids(text).collect();
    if ids.is_empty() {
        return Ok(Named::No);
    }
    let paths: Vec<PathBuf> = folder.into_iter().cloned().collect();
    let found = candidates(&paths).into_iter().find(|session| ids.iter().any(|id| session.has_id(id)));
    Ok(match found {
        Some(file) if let Some(empty) = unread::no_session(&file) => {
            let trouble = empty.trouble.unwrap_or_default();
            ask.say(&format!("The session that the error names: {}", plain(&shown(file.path()))));
            ask.say(&plain(&trouble));
            Named::Missing
        }
        Some(session) => {
            ask.say(&format!("The session that the error names: {}", plain(&shown(session.path()))));
            Named::Here(session.path().to_path_buf())
        }
        None if known.name == "lost" => {
            missing(known, &ids, ask)?;
            Named::Missing
        }
        None => Named::No,
    })
}

/// Says what is known of a session that is not here.
fn missing(known: &Family, ids: &[&str], ask: &mut Ask<'_>) -> Result<(), String> {
    let named = plain(&ids.join(" or "));
    let Some((became, command)) = kept_by_id(&ask.explain.config.load()?, ids) else {
        ask.say(&format!(
            "No session here is called {named}: it was deleted or moved, or is on another machine."
        ));
        ask.say(known.advice);
        return Ok(());
    };
    ask.say(&format!("No session here is called {named} any more. {became} To put it back:"));
    ask.whole(&plain(&command));
    ask.answer.command = Some(command);
    Ok(())
}

/// Words of a text that are ids of sessions: UUIDs, and those of OpenCode.
fn session_ids(text: &str) -> impl Iterator<Item = &str> {
    const UUID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)));
    words.filter(|word| {
        let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        is_hex && word.split('-').map(str::len).eq(UUID_PARTS) || word.starts_with("ses_")
    })
}

/// Finds the session that has the error, and prints its name. If there is none, prints advice and returns `None`.
fn search(
    known: &'static Family,
    text: &str,
    ask: &Ask<'_>,
    folder: Option<&PathBuf>,
) -> Result<Option<PathBuf>, String> {
    let paths: Vec<PathBuf> = folder.into_iter().cloned().collect();
    if paths.is_empty() && known_roots().is_empty() {
        ask.say(&paragraphs(&[known.fix, known.advice]));
        return Ok(None);
    }
    let looks = Looks::new(&ask.explain.config.load()?, &paths);
    let ids = if is_length(text) { Vec::new() } else { ids(text) };
    let found = ErrorSearch { known, text, ids: &ids }.run(&looks, &paths);
    let sessions = plural(found.sessions as u64, "session");
    let Some((session, fit)) = &found.session else {
        let what = if ids.is_empty() {
            "has this error".to_string()
        } else {
            format!("holds {}", plain(&ids.join(" or ")))
        };
        let none = format!(
            "None of {sessions} here {what}. If you know the file, name it: tailor explain 'ERROR TEXT' FILE"
        );
        ask.say(&none);
        ask.say(&paragraphs(&[known.fix, known.advice]));
        return Ok(None);
    };
    let title = &session.headline.title;
    let title = title.as_ref().map(|title| TableWriter::of_stdout().begin(title, TITLE_COLUMNS));
    let title = title.map(|title| format!(" \"{title}\"")).unwrap_or_default();
    let name = format!("{}{title}, {} ago", session.agent_name(), age(session.age));
    let which = match fit {
        Fit::HasId => "The call is in this session",
        Fit::Recorded => "The newest session with this error",
        Fit::HasDefect => "The newest session with such a defect",
        Fit::Near | Fit::Likely => "Most likely this session",
        Fit::Repaired => {
            repaired(session, &name, ask);
            return Ok(None);
        }
    };
    let of = if is_quiet() { String::new() } else { format!(", of {sessions}") };
    ask.say(&format!("{which}{of}: {name}"));
    Ok(Some(session.path.clone()))
}

/// What to say of a session that holds an id of the error, but not what the error is about.
fn repaired(session: &ListedSession, name: &str, ask: &Ask<'_>) {
    ask.say(&format!("The call is in this session: {name}"));
    ask.whole(&plain(&shown(&session.path)));
    match session.command.as_ref().filter(|_| session.state.is_stuck()) {
        Some(command) => {
            ask.say(&format!(
                "Tailor no longer finds what this error is about, but something else. Run: {command}"
            ));
        }
        None => ask.say("Tailor finds nothing wrong with it any more."),
    }
    if let Some((words, folder)) = session.resume() {
        ask.whole(&format!("Go on with: {}", in_folder(&words, folder.filter(|folder| folder.is_dir()))));
    }
}

/// The texts that are not empty, each as a line.
fn paragraphs(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// Prints lines that fit the screen.
fn print_lines(text: &str) {
    text.lines().for_each(|line| println!("{}", Screen::of_stdout().fit(line)));
}

/// What an error is about in a file.
struct ErrorSubject {
    findings: Vec<Finding>,
    looked: Examination,
    /// The context window that it is measured against.
    window: u64,
    /// The error with which its last turn failed.
    said: Option<String>,
}

/// Prints the findings that cause the error, under a heading if there is one, then the text of `end`, and how to
/// continue.
fn in_file(
    path: &Path,
    text: &str,
    ask: &mut Ask<'_>,
    heading: Option<&str>,
    is_about: &dyn Fn(&Finding) -> bool,
    end: &dyn Fn(&ErrorSubject) -> Advice,
) -> CommandResult {
    let policies = ask.explain.config.load()?.policies();
    let (blame, looked, said) = find_error(path, text, &policies)?;
    let window = looked.context_tokens.window(policies.for_format(looked.facts.format));
    ask.whole(&format!("{}:", plain(&shown(path))));
    ask.answer.path = Some(portable_text(path));
    tell(&blame, text, ask);
    let mut findings = looked.findings.clone();
    findings.retain(is_about);
    if is_length(text) {
        // What is not sent makes no request longer.
        findings.retain(|finding| blame.unsent.binary_search(&finding.line).is_err());
        tell_context(looked.context_tokens.tokens, window, ask);
    }
    if let Some(heading) = heading.filter(|_| !findings.is_empty()) {
        ask.whole(&format!("  {heading}:"));
    }
    let (listed, rest) = findings.split_at(findings.len().min(FINDINGS_MAX));
    for found in listed {
        let (line, rule) = (found.line, found.rule);
        ask.say(&format!("  line {line}: {} {}: {}", rule.code(), rule.name(), found.message));
    }
    let more: u64 = rest.iter().map(Finding::count).chain(listed.iter().map(|found| found.more)).sum();
    if more > 0 {
        ask.whole(&format!("  and {more} more (tailor scan)"));
    }
    let found = ErrorSubject { findings, looked, window, said };
    let advice = end(&found);
    let shown = advice.shown();
    if !shown.is_empty() {
        ask.whole("");
        ask.say(&shown);
    }
    if advice.goes_on {
        go_on(path, &found.looked, ask);
    }
    ask.answer.command = advice.run.map(|(_, command)| command);
    ask.answer.message = Some(shown).filter(|shown| !shown.is_empty());
    let reports = found.findings.into_iter().map(|finding| FindingReport::new(path, finding));
    ask.answer.findings = Some(reports.collect());
    Ok(ExitStatus::Clean)
}

/// How much the context has of what it may have.
fn tell_context(tokens: u64, window: u64, ask: &mut Ask<'_>) {
    ask.answer.tokens = Some(tokens);
    if window > 0 {
        ask.answer.window_tokens = Some(window);
        let percent = percent(tokens, window);
        ask.whole(&format!("  context: {} of {} tokens ({percent})", grouped(tokens), grouped(window)));
    }
}

/// How to go on once the session is repaired, where the agent is known.
fn go_on(path: &Path, looked: &Examination, ask: &mut Ask<'_>) {
    let (Some(format), Some(name)) = (looked.facts.format, path.to_str()) else { return };
    let agent = format.agent(name);
    let Some(words) = agent.resume(name) else { return };
    let folder = looked.headline.folder.as_deref().map(Path::new).filter(|folder| folder.is_dir());
    let command = in_folder(&words.collect::<Vec<_>>(), folder);
    let text =
        format!("Quit {} first if it has this session open. Afterwards, go on with: {command}", agent.name);
    ask.say(&text);
    ask.answer.resume = Some(command);
}

/// The places of a file that the error names, and all findings in the file.
fn find_error(
    path: &Path,
    text: &str,
    policies: &Policies,
) -> Result<(At, Examination, Option<String>), String> {
    let situation = Situation { error: Some(text.to_string()), ..Situation::default() };
    let looked = read_to_examine(path, None, policies, &situation, |reading, case| {
        Ok::<_, Fault>((blame(reading, text)?, examine_read(reading, case)?, last_error(reading)?))
    });
    let could_not = |why: &dyn std::fmt::Display| {
        format!("{}: could not look for the error in it: {why}", path.display())
    };
    match looked {
        Err(Stop::Failed(error)) => Err(describe_error(path, &error)),
        Err(reason) => Err(could_not(&reason)),
        Ok((None, ..)) => Err(could_not(&keeper::Unsupported::UnknownFormat)),
        Ok((Some(blame), looked, said)) => Ok((blame, looked, said)),
    }
}

/// The lines that the error names, by number and by id; and ids that are not in the file.
fn tell(blame: &At, text: &str, ask: &mut Ask<'_>) {
    ask.answer.named_lines.clone_from(&blame.at);
    match (&blame.place, &blame.at[..]) {
        (Some(place), []) => {
            let messages = plural(blame.messages as u64, "message");
            ask.whole(&format!("  {place} is not in the session: it has {messages} now"));
        }
        (Some(place), lines) => {
            let what = if blame.what.is_empty() { String::new() } else { format!(": {}", blame.what) };
            ask.whole(&format!("  {place} is {} of the file{what}", in_words(lines)));
        }
        (None, _) => {}
    }
    if let (Some(role), [_, ..]) = (blame.other_role, &blame.at[..]) {
        ask.whole(&format!(
            "  The error speaks of role {role} there, so it may count differently: look around it"
        ));
    }
    if !blame.at.is_empty()
        && !blame.named.is_empty()
        && !blame.named.iter().any(|(_, on)| meet(on, &blame.at))
    {
        ask.whole("  The id and the number are on different lines; the id is surer");
    }
    for (id, lines) in &blame.named {
        ask.whole(&format!("  {} is on {}", plain(id), in_words(lines)));
    }
    for id in ids(text) {
        if !blame.named.iter().any(|(named, _)| named == id) {
            ask.whole(&format!("  {} is not in this file", plain(id)));
        }
    }
}

/// Whether two lists have a line in common.
fn meet(one: &[u64], other: &[u64]) -> bool {
    one.iter().any(|line| other.contains(line))
}

/// Words of a text that can only be ids of calls or items, each once.
fn ids(text: &str) -> Vec<&str> {
    const BEGIN: [&str; 6] = ["toolu_", "srvtoolu_", "call_", "chatcmpl-tool-", "fc_", "rs_"];
    /// Fields of requests, which errors name.
    const FIELDS: [&str; 2] = ["call_id", "call_ids"];
    let mut found = Vec::new();
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c))) {
        let rest = BEGIN.iter().find_map(|begin| word.strip_prefix(begin));
        if rest.is_some_and(|rest| !rest.is_empty()) && !FIELDS.contains(&word) && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// `line 3`, `lines 3, 4 and 9`.
fn in_words(lines: &[u64]) -> String {
    let numbers: Vec<String> = lines.iter().map(|line| grouped(*line)).collect();
    match &numbers[..] {
        [first @ .., last] if !first.is_empty() => format!("lines {} and {last}", first.join(", ")),
        _ => format!("line {}", numbers.concat()),
    }
}

/// The command that repairs these findings and nothing else, or why there is none; `None` without findings.
fn settles(findings: &[Finding], path: &Path, error: &str) -> Option<Advice> {
    findings.first()?;
    if let Some(command) = remedy::command(findings, path, error) {
        return Some(Advice::of_command("To repair it", command));
    }
    let held = findings.iter().find_map(|finding| match finding.fix.safety {
        Safety::Held(held) => Some(held),
        _ => None,
    });
    let text = held.map_or("Tailor only reports this.".to_string(), |held| {
        format!("Tailor holds the repair back: {held}.")
    });
    Some(Advice::of_text(text))
}
