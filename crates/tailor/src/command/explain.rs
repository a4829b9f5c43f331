//! `tailor explain`: what a rule means, or what a profile does.
#![expect(clippy::print_stdout, reason = "the explanation is the result")]

use crate::args::{Explain, or_meant, rules};
use crate::printer::talk;
use crate::status::Status;
use transcript::profile::{self, PROFILES};
use transcript::rule::{self, RULES};

pub(crate) fn run(explain: &Explain) -> Status {
    let Some(code) = &explain.code else {
        for rule in RULES {
            println!("{:3} {:26} {}", rule.code(), rule.name(), rule.help().what);
        }
        return Status::Clean;
    };
    if let Some(profile) = profile::find(code) {
        println!("{}\n\n{}\n\nSource: {}", profile.name, profile.what, profile.source);
        return Status::Clean;
    }
    let Some(rule) = rule::find(code) else {
        let profiles: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        let listed = profiles.join(", ");
        let message = format!("{code}: no such rule (tailor explain lists them), and no profile ({listed})");
        talk(&or_meant(message, code, &[rules(), profiles].concat()));
        return Status::Error;
    };
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
    Status::Clean
}
