//! What agents repair themselves when they send a session: a clause of a contract that they see to is nothing to tell.

/// What an agent sees to.
pub struct Mends {
    /// The format of its sessions.
    pub format: &'static str,
    /// The agent, and the version that was looked at.
    pub agent: &'static str,
    /// What the terms are about that it sees to.
    pub about: &'static [&'static str],
}

/// What is known of agents, besides what their formats say of blank texts. Formats of bare messages mend nothing.
pub const MENDS: &[Mends] = &[
    Mends {
        format: "pi",
        agent: "pi 1.6.0",
        about: &["call-ids", "item-ids", "open-call", "reasoning", "no-images"],
    },
    Mends { format: "opencode", agent: "OpenCode 47767a7", about: &["reasoning"] },
    Mends { format: "kimi-code", agent: "Kimi Code d723cc4", about: &["call-ids", "repeated-call-id"] },
    Mends { format: "gemini-cli", agent: "Gemini CLI 0.61", about: &["call-signatures"] },
];

/// What the agent of a format mends.
pub(super) fn of(format: &str) -> Option<&'static Mends> {
    MENDS.iter().find(|mends| mends.format == format)
}
