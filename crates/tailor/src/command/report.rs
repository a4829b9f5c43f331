//! `tailor report`: a page with pictures.

use super::progress::Progress;
use super::top::contents;
use super::{BATCH_FILES, failed, gather, nothing_found};
use crate::args::Report;
use crate::output::Whole;
use crate::page::{Looked, Page, may_replace};
use crate::printer::{plural, talk};
use crate::status::Status;
use crate::tokens;
use crate::weighed::Weighed;
use keeper::{Error, Found, Policies};
use rayon::prelude::*;
use std::io;
use std::path::Path;
use transcript::plan::Rendered;
use transcript::weight::weigh;
use transcript::{Fault, Source, mend};

/// How many of the largest entries of each file are told at most.
const LARGEST: usize = 12;

pub(crate) fn run(report: &Report) -> Status {
    let path = &report.output;
    match may_replace(path) {
        Ok(true) => {}
        Ok(false) => {
            let what = "is there and is not a report; name another file, or remove it first";
            return failed(&format!("{}: could not write the report: {what}", path.display()));
        }
        Err(error) => return failed(&unwritten(path, &error)),
    }
    let files = gather(&report.paths);
    if files.is_empty() {
        return nothing_found(&report.paths);
    }
    let policies = match report.config.load().and_then(|config| report.limits.policies(&config)) {
        Ok(policies) => policies,
        Err(error) => return failed(&error),
    };
    let (mut page, mut status) = (Page::default(), Status::Clean);
    let progress = Progress::new(&files);
    for batch in files.chunks(BATCH_FILES) {
        let work = |found: &Result<Found, Error>| {
            let named = found.as_ref().is_ok_and(|found| found.root.is_none());
            let looked = found
                .as_ref()
                .map_or_else(|error| Err(Box::new(Weighed::failed(error))), |f| one(f, report, &policies));
            progress.done(found);
            (looked, named)
        };
        let looked: Vec<(Result<Looked, Box<Weighed>>, bool)> = batch.par_iter().map(work).collect();
        for (looked, named) in looked {
            match looked {
                Ok(looked) => page.add(looked),
                Err(weighed) => status = status.max(trouble(&mut page, *weighed, named)),
            }
        }
    }
    progress.end();
    if page.is_empty() {
        return failed(&format!(
            "{}: could not write the report: there is no transcript to report on",
            path.display()
        ));
    }
    match write(page, path, report.show_content) {
        Ok(sessions) => {
            talk(&format!("{}: a report on {}", path.display(), plural(sessions, "session")));
            status
        }
        Err(error) => failed(&unwritten(path, &error)),
    }
}

fn unwritten(path: &Path, error: &io::Error) -> String {
    format!("{}: could not write the report: {error}", path.display())
}

/// Of what lies in a folder and is no transcript only the number is told.
fn trouble(page: &mut Page, weighed: Weighed, named: bool) -> Status {
    let told = named || weighed.outcome != "unsupported";
    if told {
        let reason = weighed.reason.as_deref().unwrap_or_default();
        let said_already = weighed.outcome == "error";
        talk(&if said_already { reason.to_string() } else { format!("{}: {reason}", weighed.path) });
    }
    page.add_trouble(weighed, told);
    if told { Status::Error } else { Status::Clean }
}

fn one(found: &Found, report: &Report, policies: &Policies) -> Result<Looked, Box<Weighed>> {
    let look = |source: &dyn Source| look(&found.path, source, policies, report.show_content);
    match keeper::read(&found.path, found.root.as_deref(), look) {
        Ok(Ok(looked)) => looked,
        Ok(Err(refusal)) => Err(Box::new(Weighed::refused(&found.path, &refusal))),
        Err(error) => Err(Box::new(Weighed::failed(&error))),
    }
}

/// Weighs a transcript before and after a fix, and says what is wrong with it.
fn look(
    path: &Path,
    source: &dyn Source,
    policies: &Policies,
    content: bool,
) -> Result<Result<Looked, Box<Weighed>>, Fault> {
    let weight = weigh(source, LARGEST, &mut tokens::of_model)?;
    let contents = if content { contents(source, &weight)? } else { Vec::new() };
    let weighed = Weighed::new(path, &weight, contents);
    if weighed.outcome != "weighed" {
        return Ok(Err(Box::new(weighed)));
    }
    let mended = mend(source, policies.choose(source)?)?;
    let after = match &mended.repair {
        Ok(repair) if !repair.plan.is_empty() => {
            let weight = weigh(&Rendered::new(source, &repair.plan), 0, &mut tokens::of_model)?;
            Some(Weighed::new(path, &weight, Vec::new()))
        }
        _ => None,
    };
    Ok(Ok(Looked::new(weighed, after.as_ref(), &mended)))
}

/// Writes the page beside its place, for nobody else to read, and puts it there when it is whole.
fn write(page: Page, path: &Path, content: bool) -> io::Result<u64> {
    let sessions = page.sessions();
    let mut file = Whole::beside(path)?;
    let made = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string();
    page.write(&mut file, made, content)?;
    file.put_in_place(path)?;
    Ok(sessions)
}
