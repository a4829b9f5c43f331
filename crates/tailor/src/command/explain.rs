//! `tailor explain`: what a rule means, what an error of an API is about and which lines are to blame, or what a profile
//! does.

use super::{failed, one_session};
use crate::args::{Explain, or_meant, rules};
use crate::printer::{plural, talk};
use crate::status::Status;
use crate::terminal::plain;
use keeper::read;
use std::path::Path;
use transcript::finding::Safety;
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
        let about = |code: &str| code == rule.code();
        if let Some(path) = &explain.file {
            println!();
            return in_file(path, "", &about, &format!("No finding of {} is in it.", rule.code()));
        }
    } else if let Some(known) = refusal::find(what) {
        return error(known, what, explain.file.as_deref());
    } else {
        return unknown(what, explain.file.as_deref());
    }
    Status::Clean
}

fn describe(rule: &dyn Rule) {
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
    // What holds a space is no name.
    if what.contains(char::is_whitespace) {
        let report = "finds nothing and the session still fails, please report the text";
        talk(&match file {
            Some(_) => format!(
                "this error is not known, so it is not said to be about the file. `tailor scan FILE` checks it all the \
                 same; if that {report}"
            ),
            None => format!(
                "not the text of an error that is known. explain takes a rule's code or name (tailor explain lists them), \
                 a profile ({listed}), or the whole text of an error, and a file that may be to blame. `tailor scan FILE` \
                 checks a session whatever the error; if that {report}"
            ),
        });
    } else {
        let message = format!(
            "{what}: no such rule (tailor explain lists them), no profile ({listed}), and no error that is known; an \
             error's whole text says more than a word of it"
        );
        talk(&or_meant(message, what, &[rules(), profiles].concat()));
    }
    if let Some(path) = file {
        in_file(path, what, &|_| true, "Nothing is wrong with it that Tailor knows.");
    }
    Status::Error
}

fn error(known: &Refusal, text: &str, file: Option<&Path>) -> Status {
    let name = |code: &&str| rule::find(code).map_or(String::new(), |rule| format!(" {}", rule.name()));
    let classes: Vec<String> = known.codes.iter().map(|code| format!("{code}{}", name(code))).collect();
    println!("{}\n\nRules: {}\n", known.what, classes.join(", "));
    let Some(path) = file else {
        println!("{}", known.settle);
        return Status::Clean;
    };
    let settle = known.settle.replace("FILE", &plain(&path.to_string_lossy()));
    in_file(path, text, &|code| known.codes.contains(&code), &settle)
}

/// What of a file is to blame, and the command that settles it; `otherwise` if no finding tells one.
fn in_file(path: &Path, text: &str, about: &dyn Fn(&str) -> bool, otherwise: &str) -> Status {
    if let Err(why) = one_session(path, "look for the error in it") {
        return failed(&why);
    }
    let looked =
        read(path, None, |source| Ok((blame(source, text)?, examine(source, &Policy::default())?.findings)));
    let could_not = |why: &dyn std::fmt::Display| {
        format!("{}: could not look for the error in it: {why}", path.display())
    };
    let (blame, mut findings) = match looked {
        Err(error) => return failed(&error),
        Ok(Err(refusal)) => return failed(&could_not(&refusal)),
        Ok(Ok((None, _))) => return failed(&could_not(&keeper::Unsupported::UnknownFormat)),
        Ok(Ok((Some(blame), findings))) => (blame, findings),
    };
    let shown = plain(&path.to_string_lossy());
    println!("{shown}:");
    tell(&blame);
    findings.retain(|finding| about(finding.rule.code()));
    for found in findings.iter().take(FINDINGS_MAX) {
        println!("  line {}: {} {}: {}", found.line, found.rule.code(), found.rule.name(), found.message);
    }
    if findings.len() > FINDINGS_MAX {
        println!("  and {} more (tailor scan)", findings.len() - FINDINGS_MAX);
    }
    println!("\n{}", settles(&findings, &shown).unwrap_or_else(|| otherwise.to_string()));
    Status::Clean
}

/// The lines that the error names, by number and by id.
fn tell(blame: &Blame) {
    match (&blame.place, &blame.at[..]) {
        (Some(place), []) => {
            let messages = plural(blame.messages as u64, "message");
            println!("  {place} is not in the request of today, which has {messages}");
        }
        (Some(place), lines) => println!("  {place} is about {}", in_words(lines)),
        (None, _) => {}
    }
    for (id, lines) in &blame.named {
        println!("  {} is on {}", plain(id), in_words(lines));
    }
}

/// `line 3`, `lines 3, 4 and 9`.
fn in_words(lines: &[u64]) -> String {
    let numbers: Vec<String> = lines.iter().map(u64::to_string).collect();
    match &numbers[..] {
        [first @ .., last] if !first.is_empty() => format!("lines {} and {last}", first.join(", ")),
        _ => format!("line {}", numbers.concat()),
    }
}

/// The command that mends most of what was found.
fn settles(findings: &[Finding], path: &str) -> Option<String> {
    let with = |wanted: &dyn Fn(Safety) -> bool| {
        findings.iter().find(|finding| wanted(finding.fix.safety)).map(|finding| finding.rule.code())
    };
    if with(&|safety| safety == Safety::Safe).is_some() {
        return Some(format!("Settle it: tailor fix {path}"));
    }
    if let Some(code) = with(&|safety| matches!(safety, Safety::Guarded(_))) {
        return Some(format!("Settle it: tailor fix --allow {code} {path}"));
    }
    let held = findings.iter().find_map(|finding| match finding.fix.safety {
        Safety::Held(held) => Some(held),
        _ => None,
    });
    held.map(|held| format!("Tailor holds the repair back: {held}."))
}
