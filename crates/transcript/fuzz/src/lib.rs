//! What the targets share: policies under which small inputs reach all rules.

use transcript::policy::{Policy, Selection, SignedThinking};
use transcript::rule::RULES;

/// The default, a tight one, and a tight one that allows everything.
pub fn policies() -> [Policy; 3] {
    // No tighter than the results that repairs insert, which are about a hundred characters long.
    let tight = Policy {
        result_chars_max: 120,
        turn_chars_max: 400,
        turn_floor_chars: 10,
        summary_chars_max: 120,
        window_tokens: Some(400),
        side_chars_max: 20,
        ..Policy::default()
    };
    let allow = RULES.iter().map(|rule| rule.code().to_string()).collect();
    let bold = Policy {
        thinking: SignedThinking::Strip,
        selection: Selection { allow, ..Selection::default() },
        ..tight.clone()
    };
    [Policy::default(), tight, bold]
}
