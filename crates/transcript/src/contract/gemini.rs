//! Gemini's `generateContent`: AI Studio and Vertex.

use super::base::{BASE, Clause, Contract, Letters, Term};

pub(super) const CONTRACT: Contract = Contract {
    name: "gemini",
    title: "Gemini",
    providers: &["google", "google-vertex", "vertex", "google-gemini-cli", "google-antigravity"],
    models: &["gemini"],
    clauses: &[
        Clause::known(
            Term::ToolNames(Letters { others: Some("_.:-"), min: 1, max: 128, begins_with_letter: true }),
            "google-genai 3.6.1",
        ),
        Clause::known(Term::ArgumentsAreObject, "google-genai 3.6.1, tried with its types"),
        Clause::reported(
            Term::CallsAnswered,
            "\"function response parts is equal to the number of function call parts\"",
        ),
        Clause::reported(
            Term::ResultsHaveCalls,
            "\"function response turn comes immediately after a function call turn\"",
        ),
        Clause::believed(Term::Alternates, "gemini-cli-core 0.61.0 mends it, if asked to"),
        Clause::reported(Term::BeginsWithUser, "\"function call turn comes immediately after a user turn\""),
        Clause::believed(Term::NoEmptyMessage, "\"required oneof field 'data'\""),
        Clause::known(
            Term::CallsSigned("skip_thought_signature_validator"),
            "gemini-cli-core 0.61.0 geminiChat.js; pydantic-ai 2.68.0, live",
        ),
        Clause::reported(
            Term::EarlierCallsSigned,
            "snow-cli #104; Gemini CLI signs only since the user last spoke",
        ),
        Clause::known(
            Term::Images(&["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"]),
            "Google's page on images",
        ),
    ],
    ..BASE
};
