//! `tailor report`: writes an HTML page with charts.

use super::progress::Progress;
use super::top::measure::contents;
use super::{BATCH_FILES, CommandResult, nothing_found, output_closed, roots};
use crate::amount::plural;
use crate::args::ReportArgs;
use crate::output::{Output, is_stdout};
use crate::page::{Page, PageContent, ScanResult, may_replace};
use crate::place::portable_text;
use crate::say::{eprint_message, hint};
use crate::size_report::SizeReport;
use crate::status::ExitStatus;
use crate::tokens;
use keeper::{Error, FoundFile, Policies, find};
use rayon::prelude::*;
use std::io;
use std::path::Path;
use transcript::plan::Rendered;
use transcript::weight::weigh;
use transcript::{Case, Fault, Reading, Situation, mend_read};

/// How many of the largest entries of each file are told at most.
const LARGEST: usize = 12;

pub(crate) fn run(report: &ReportArgs) -> CommandResult {
    let as_json = report.json.is_json();
    if as_json && report.output.as_deref().is_some_and(is_stdout) {
        return Err("standard output is for the page or for --json: name a file, or leave -o out".into());
    }
    let place = report.output.as_deref().map(place).transpose()?;
    let files = find(&roots(&report.paths));
    if files.is_empty() {
        return Err(nothing_found(&report.paths));
    }
    let policies = report.config.load().map(|config| report.limits.policies(&config))?;
    let (mut page, mut status) = (Page::default(), ExitStatus::Clean);
    let progress = Progress::new(&files);
    for batch in files.chunks(BATCH_FILES) {
        let work = |found: &Result<FoundFile, Error>| {
            let named = found.as_ref().is_ok_and(|found| found.root.is_none());
            let looked = found.as_ref().map_or_else(
                |error| Looked::Not(Box::new(SizeReport::failed(error))),
                |f| one(f, report, &policies),
            );
            progress.done(found);
            (looked, named)
        };
        let looked: Vec<(Looked, bool)> = batch.par_iter().map(work).collect();
        for (looked, named) in looked {
            match looked {
                Looked::Whole(looked) => page.add(*looked),
                Looked::Not(weighed) => status = status.max(trouble(&mut page, *weighed, named)),
            }
        }
    }
    progress.end();
    if page.is_empty() {
        let name = place.map_or("standard output".to_string(), |(_, name)| name);
        return Err(format!("{name}: could not write the report: there is no transcript to report on").into());
    }
    let lines =
        if as_json { page.json_lines(report.output.as_deref().map(portable_text)) } else { Ok(Vec::new()) };
    let lines = lines?;
    let tell = || lines.iter().for_each(|line| println!("{}", crate::terminal::json(line)));
    let Some((out, name)) = place else {
        tell();
        return Ok(status);
    };
    // Nobody else reads a file of ours; who reads a pipe is not known.
    let titles = !report.no_titles && (out.replaces().is_some() || report.show_content);
    let written = write(page, out, PageContent { content: report.show_content, titles });
    let sessions = written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => output_closed(&name, &error),
        _ => unwritten(&name, &error).into(),
    })?;
    if as_json {
        tell();
    } else {
        hint(&format!("{name}: a report on {}", plural(sessions, "session")));
    }
    Ok(status)
}

/// The output for the page, and its name. Only a regular file is checked for being a report: reading a pipe would
/// block, and pipes and devices are not replaced anyway.
fn place(path: &Path) -> Result<(Output, String), String> {
    if is_stdout(path) {
        return Ok((Output::stdout(), "standard output".to_string()));
    }
    let name = path.display().to_string();
    let out = Output::to_file(path).and_then(|out| out.make_private().map(|()| out));
    let out = out.map_err(|error| unwritten(&name, &error))?;
    match out.replaces().map_or(Ok(true), may_replace) {
        Ok(true) => Ok((out, name)),
        Ok(false) => {
            let what = "is there and is not a report; name another file, or remove it first";
            Err(format!("{name}: could not write the report: {what}"))
        }
        Err(error) => Err(unwritten(&name, &error)),
    }
}

fn unwritten(name: &str, error: &io::Error) -> String {
    format!("{name}: could not write the report: {error}")
}

/// Files in a folder that are not transcripts are only counted.
fn trouble(page: &mut Page, weighed: SizeReport, named: bool) -> ExitStatus {
    let told = named || weighed.outcome != "unsupported";
    if told {
        let reason = weighed.reason.as_deref().unwrap_or_default();
        let said_already = weighed.outcome == "error";
        eprint_message(&if said_already {
            reason.to_string()
        } else {
            format!("{}: {reason}", weighed.path)
        });
    }
    page.add_trouble(weighed, told);
    if told { ExitStatus::Error } else { ExitStatus::Clean }
}

/// What came of a look at a file.
enum Looked {
    Whole(Box<ScanResult>),
    /// It is not a transcript, or could not be read.
    Not(Box<SizeReport>),
}

fn one(found: &FoundFile, report: &ReportArgs, policies: &Policies) -> Looked {
    let look =
        |reading: &Reading<'_>, case: Case<'_>| measure(&found.path, reading, case, report.show_content);
    let root = found.root.as_deref();
    keeper::read_to_examine(&found.path, root, policies, &Situation::default(), look)
        .unwrap_or_else(|stop| Looked::Not(Box::new(SizeReport::stopped(&found.path, &stop))))
}

/// Measures a transcript before and after a fix, and lists what is wrong with it.
fn measure(path: &Path, reading: &Reading<'_>, case: Case<'_>, content: bool) -> Result<Looked, Fault> {
    let source = reading.source;
    let weight = weigh(source, LARGEST, &mut tokens::of_model)?;
    let contents = if content { contents(source, &weight)? } else { Vec::new() };
    let weighed = SizeReport::new(path, &weight, contents);
    if weighed.outcome != "weighed" {
        return Ok(Looked::Not(Box::new(weighed)));
    }
    let mended = mend_read(reading, case)?;
    let after = match &mended.repair {
        Ok(repair) if !repair.plan.is_empty() => {
            let weight = weigh(&Rendered::new(source, &repair.plan), 0, &mut tokens::of_model)?;
            Some(SizeReport::new(path, &weight, Vec::new()))
        }
        _ => None,
    };
    let window = mended.before.context_tokens.window(case.policy);
    Ok(Looked::Whole(Box::new(ScanResult::new(weighed, after.as_ref(), &mended, window))))
}

/// Writes the page and puts it in its place when it is whole.
fn write(page: Page, mut out: Output, shown: PageContent) -> io::Result<u64> {
    let sessions = page.sessions();
    let made = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string();
    page.write(&mut out, made, shown)?;
    out.finish()?;
    Ok(sessions)
}
