//! `tailor explain`: what a rule means, what an error of an API is about and which lines are to blame, or what a profile
//! does.

use super::{failed, one_session};
use crate::amount::plural;
use crate::args::Explain;
use crate::say::eprint_message;
use crate::status::Status;
use crate::terminal::{plain, shell_word};
use crate::value::{or_meant, rules};
use keeper::{Stop, read};
use std::path::Path;
use transcript::finding::{Safety, Severity};
use transcript::profile::{self, PROFILES};
use transcript::refusal::{self, Refusal};
use transcript::request::{Blame, blame};
use transcript::rule::{self, RULES, Rule};
use transcript::{Finding, Policy, examine};

/// How many findings are named.
const FINDINGS_MAX: usize = 10;

pub(crate) fn run(explain: &Explain) -> Status {
    let Some(what) = &explain.what else {
        for rule in RULES {
            println!("{:3} {:26} {}", rule.code(), rule.name(), rule.help().what);
        }
        return Status::Clean;
    };
    if let Some(profile) = profile::find(what) {
        println!("{}\n\n{}\n\nSource: {}", profile.name, profile.what, profile.source);
    } else if let Some(rule) = rule::find(what) {
        describe(rule);
        if let Some(path) = &explain.file {
            println!();
            let none = format!("{} is not found in this file.", rule.code());
            return in_file(
                path,
                "",
                None,
                &|finding| finding.rule.code() == rule.code(),
                &|findings, file| settles(findings, file).unwrap_or_else(|| none.clone()),
            );
        }
    } else if let Some(known) = refusal::find(what) {
        return error(known, what, explain.file.as_deref());
    } else {
        return unknown(what, explain.file.as_deref());
    }
    Status::Clean
}

fn describe(rule: &Rule) {
    let help = rule.help();
    println!(
        "{} {}\n\n{}\n\nWhy: {}\n\nFix: {}\n\nSource: {}",
        rule.code(),
        rule.name(),
        help.what,
        help.why,
        help.fix,
        help.source
    );
}

/// Neither a code nor an error that is known: what to do then.
fn unknown(what: &str, file: Option<&Path>) -> Status {
    let profiles: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    let listed = profiles.join(", ");
    if what.trim().is_empty() {
        eprint_message("the text is empty: pass the whole text of an error");
    // What holds a space is no name.
    } else if what.contains(char::is_whitespace) {
        let report = "finds nothing and the session still fails, please report the error text";
        eprint_message(&match file {
            Some(_) => format!(
                "I don't recognise this error message. `tailor scan FILE` checks the session anyway; if it {report}"
            ),
            None => format!(
                "I don't recognise this error message. Pass the whole text of an error, a rule's code or name (tailor \
                 explain lists them) or a profile ({listed}). `tailor scan FILE` checks a session whatever the error is; \
                 if it {report}"
            ),
        });
    } else {
        let message = format!(
            "{what}: no such rule (tailor explain lists them), profile ({listed}) or known error; pass the whole text \
             of an error"
        );
        eprint_message(&or_meant(message, what, &[rules(), profiles].concat()));
    }
    if let Some(path) = file {
        // Whether one of these is the reason nobody knows, so no repair is proposed.
        in_file(
            path,
            what,
            Some("scan also finds"),
            &|finding| finding.severity == Severity::Error,
            &|findings, _| {
                if findings.is_empty() { "No errors found.".to_string() } else { String::new() }
            },
        );
    }
    Status::Error
}

fn error(known: &Refusal, text: &str, file: Option<&Path>) -> Status {
    let rules: Vec<&Rule> = known.codes.iter().filter_map(|code| rule::find(code)).collect();
    let names: Vec<String> = rules.iter().map(|rule| format!("{} {}", rule.code(), rule.name())).collect();
    let names = names.join(", ");
    println!("{}\n", known.what);
    if !rules.is_empty() {
        println!("Rules: {names}\n");
    }
    let Some(path) = file else {
        println!("{}", paragraphs(&[known.fix, known.advice]));
        return Status::Clean;
    };
    let about = |finding: &Finding| known.codes.contains(&finding.rule.code());
    in_file(path, text, None, &about, &|findings, file| {
        let settled = match settles(findings, file) {
            _ if rules.is_empty() => known.fix.to_string(),
            None => format!("Not found in this file: {names}."),
            Some(settled) => settled,
        };
        paragraphs(&[&settled, &known.advice.replace("FILE", file)])
    })
}

/// What there is of these, each on a line.
fn paragraphs(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// Prints what of a file is to blame, under a heading if there is one, and then what `end` says about it, given the path as
/// a word of a shell.
fn in_file(
    path: &Path,
    text: &str,
    heading: Option<&str>,
    about: &dyn Fn(&Finding) -> bool,
    end: &dyn Fn(&[Finding], &str) -> String,
) -> Status {
    let (blame, mut findings) = match look(path, text) {
        Ok(found) => found,
        Err(why) => return failed(&why),
    };
    let shown = plain(&path.to_string_lossy());
    println!("{shown}:");
    tell(&blame, text);
    findings.retain(|finding| about(finding));
    if let Some(heading) = heading.filter(|_| !findings.is_empty()) {
        println!("  {heading}:");
    }
    let (listed, rest) = findings.split_at(findings.len().min(FINDINGS_MAX));
    for found in listed {
        println!("  line {}: {} {}: {}", found.line, found.rule.code(), found.rule.name(), found.message);
    }
    let more: u64 = rest.iter().map(Finding::count).chain(listed.iter().map(|found| found.more)).sum();
    if more > 0 {
        println!("  and {more} more (tailor scan)");
    }
    let end = end(&findings, &shell_word(&path.to_string_lossy()));
    if !end.is_empty() {
        println!("\n{end}");
    }
    Status::Clean
}

/// The places of a file that a text names, and all that is found in it.
fn look(path: &Path, text: &str) -> Result<(Blame, Vec<Finding>), String> {
    one_session(path, "look for the error in it")?;
    let looked =
        read(path, None, |source| Ok((blame(source, text)?, examine(source, &Policy::default())?.findings)));
    let could_not = |why: &dyn std::fmt::Display| {
        format!("{}: could not look for the error in it: {why}", path.display())
    };
    match looked {
        Err(Stop::Failed(error)) => Err(error.to_string()),
        Err(reason) => Err(could_not(&reason)),
        Ok((None, _)) => Err(could_not(&keeper::Unsupported::UnknownFormat)),
        Ok((Some(blame), findings)) => Ok((blame, findings)),
    }
}

/// The lines that the error names, by number and by id; and ids that are not in the file.
fn tell(blame: &Blame, text: &str) {
    match (&blame.place, &blame.at[..]) {
        (Some(place), []) => {
            let messages = plural(blame.messages as u64, "message");
            println!("  {place} is not in the session: it has {messages} now");
        }
        (Some(place), lines) => println!("  {place} is {} of the file", in_words(lines)),
        (None, _) => {}
    }
    for (id, lines) in &blame.named {
        println!("  {} is on {}", plain(id), in_words(lines));
    }
    for id in ids(text) {
        if !blame.named.iter().any(|(named, _)| named == id) {
            println!("  {} is not in this file", plain(id));
        }
    }
}

/// Words of a text that can be nothing but ids of calls or items, each once.
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
    let numbers: Vec<String> = lines.iter().map(u64::to_string).collect();
    match &numbers[..] {
        [first @ .., last] if !first.is_empty() => format!("lines {} and {last}", first.join(", ")),
        _ => format!("line {}", numbers.concat()),
    }
}

/// The command that repairs what was found and nothing else, or why there is none; `None` if nothing was found.
fn settles(findings: &[Finding], file: &str) -> Option<String> {
    let codes = |is_fixed: &dyn Fn(&Safety) -> bool| {
        let mut codes: Vec<&str> = Vec::new();
        for finding in findings.iter().filter(|finding| is_fixed(&finding.fix.safety)) {
            if !codes.contains(&finding.rule.code()) {
                codes.push(finding.rule.code());
            }
        }
        (!codes.is_empty()).then(|| codes.join(","))
    };
    if let Some(safe) = codes(&|safety| *safety == Safety::Safe) {
        return Some(format!("To repair it, run: tailor fix --select {safe} {file}"));
    }
    if let Some(guarded) = codes(&|safety| matches!(safety, Safety::Guarded(_))) {
        return Some(format!("To repair it, run: tailor fix --select {guarded} --allow {guarded} {file}"));
    }
    let held = findings.iter().find_map(|finding| match finding.fix.safety {
        Safety::Held(held) => Some(held),
        _ => None,
    });
    findings.first()?;
    Some(held.map_or("Tailor only reports this.".to_string(), |held| {
        format!("Tailor holds the repair back: {held}.")
    }))
}
