//! What a repair leaves, and which options would repair that.

use crate::amount::grouped;
use std::fmt;
use transcript::finding::{Finding, Safety};

/// What a repair leaves: `2 need --allow S9,M1; 1 stays as it is (P10)`.
#[derive(Default)]
pub(crate) struct Remains {
    /// What each option would repair.
    needs: Vec<(&'static str, CountedCodes)>,
    /// What no option repairs.
    stays: CountedCodes,
}

/// A number of findings, and their rules.
#[derive(Default)]
struct CountedCodes {
    count: u64,
    codes: Vec<&'static str>,
}

/// The option that allows guarded fixes of the rules it names.
const ALLOW: &str = "--allow";

impl Remains {
    pub(crate) fn from_findings(findings: &[Finding]) -> Self {
        let mut remains = Self::default();
        for finding in findings {
            let option = match finding.fix.safety {
                Safety::Guarded(_) => Some(ALLOW),
                Safety::Held(held) => held.option(),
                Safety::Safe | Safety::None => None,
            };
            remains.place(option).add(finding);
        }
        remains
    }

    fn place(&mut self, option: Option<&'static str>) -> &mut CountedCodes {
        let Some(option) = option else { return &mut self.stays };
        let at = self.needs.iter().position(|(known, _)| *known == option).unwrap_or(self.needs.len());
        if at == self.needs.len() {
            self.needs.push((option, CountedCodes::default()));
        }
        &mut self.needs[at].1
    }
}

impl CountedCodes {
    fn add(&mut self, finding: &Finding) {
        self.count += finding.count();
        if !self.codes.contains(&finding.rule.code()) {
            self.codes.push(finding.rule.code());
        }
    }
}

/// Parts with their separators.
impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (option, CountedCodes { count, codes }) in &self.needs {
            let need = if *count == 1 { "needs" } else { "need" };
            write!(f, "; {} {need} {option}", grouped(*count))?;
            if *option == ALLOW {
                write!(f, " {}", codes.join(","))?;
            }
        }
        let CountedCodes { count, codes } = &self.stays;
        match count {
            0 => Ok(()),
            1 => write!(f, "; 1 stays as it is ({})", codes.join(",")),
            count => write!(f, "; {} stay as they are ({})", grouped(*count), codes.join(",")),
        }
    }
}
