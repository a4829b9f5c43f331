//! What a clause of an error says, where no phrase of a family is known: something, and what happened to it.
//!
//! A row holds words for a thing and words for a fault. Where one of each stands in the same clause, in whichever order, the
//! row's family is the answer: "the key has been revoked" and "could not validate credentials" need no phrase of their
//! own. The first row counts: money before rates, rates before lengths, and what is broadest last.

use super::families::FAMILIES;
use super::family::Family;
use super::pattern::Facts;

/// That something is not as it has to be.
const REFUSED: &str = "invalid|unsupported|not supported|not support|not valid|not allowed|not permitted|incorrect|unknown|\
    unexpected|illegal|rejected|denied|cannot|could not|failed|must|turn off|not applicable|not available|unavailable|\
    deprecated|disabled|mandatory|conflict|should|may not|undefined|unrecognized|incompatible|only|needs|requires|required|\
    unable|not implemented|not found|missing";
/// That something is more than may be.
const EXCEEDED: &str = "exceed|exceeds|exceeded|exceeding|too long|too large|too big|too many|longer than|larger than|\
    greater than|more than|beyond|limit is|supports up to|limited to|overflow|full";

/// A thing, what happened to it, and which family that is.
struct Row {
    family: &'static str,
    things: &'static str,
    /// Lists of faults.
    faults: &'static [&'static str],
}

const ROWS: &[Row] = &[
    Row {
        family: "no-result",
        things: "tool result|tool results|tool output|tool response|tool responses|function response|function call output",
        faults: &["missing|without|never|not received|lacks|lost|ended before|awaiting"],
    },
    Row {
        family: "thinking",
        things: "thinking block|thinking blocks|redacted thinking",
        faults: &["must|must match|cannot|invalid|expected|missing|modified|original"],
    },
    Row {
        family: "block",
        things: "input item|content part|content block|content item|message part",
        faults: &["missing|required|unknown|unsupported|not supported|unexpected"],
    },
    Row {
        family: "sealed-reasoning",
        things: "encrypted content|encrypted reasoning|encrypted item",
        faults: &["not issued|could not|cannot|invalid|not valid|failed|unknown|decrypt"],
    },
    Row {
        family: "filter", things: "提示|内容|输入|安全词", faults: &["拦截|违规|敏感|不当|安全词错误"]
    },
    Row {
        family: "filter",
        things: "safety|content policy|usage policy|usage policies|content filter|content management|moderation|cybersecurity",
        faults: &[
            "blocked|flagged|filtered|rejected|refused|violate|violates|violated|violating|triggering|failed|result of|\
                   risk|prohibited|breach",
        ],
    },
    Row {
        family: "credit",
        things: "credit|credits|balance|billing|extra usage|paid|prepaid|payment|free tier|free plan|subscription",
        faults: &[
            "can only|insufficient|out of|exhausted|depleted|required|requires|used up|used all|no|not enough|low|too low|\
                   hard limit|expired|overdue|not available on|not included",
        ],
    },
    Row {
        family: "rate",
        things: "rate|quota|usage|requests|request limit|window|tpm|rpm|tpd|5-hour|7-day|weekly|monthly|daily|hourly|\
                 concurrent|cooldown|cooling|throttled|throttling|resource-exhausted|websocket connections|capacity",
        faults: &[
            "exceed|exceeded|exceeds|limit|limited|limits|reached|rejected|exhausted|too many|too quickly|used all|over|\
                   down|hit|resets|reset",
        ],
    },
    Row {
        family: "login",
        things: "api key|api-key|apikey|key|credential|credentials|login|log in|logged in|sign in|signed in|oauth|oauth2|\
                 access token|id token|refresh token|auth token|token refresh|token exchange|clientid|auth|auth type|authtype|\
                 authenticate|authenticated|authentication|authorization|account|permission|permissions|scope|scopes|\
                 certificate|organization|identity",
        faults: &[
            "revoked|expired|disabled|deactivated|suspended|invalid|incorrect|insufficient|denied|missing|required|\
                   requires|not found|could not|not able|unable|failed|not valid|wrong|no|unauthorized|must|rejected|cannot|\
                   unknown|not configured|not provided|without|unavailable|mismatch|check your|timeout|timed out|error|\
                   not currently|not authenticated|doesnt match|does not match",
        ],
    },
    Row { family: "login", things: "refresh|exchange", faults: &["token"] },
    Row { family: "credit", things: "余额|额度|账户", faults: &["不足|用完|欠费"] },
    Row {
        family: "rate", things: "请求|速率|频率|并发|配额", faults: &["上限|限制|频繁|过快|用尽"]
    },
    Row {
        family: "login", things: "密钥|令牌|认证|权限|key", faults: &["无|失败|不足|缺失|过期|错误"]
    },
    Row { family: "model", things: "模型", faults: &["不存在|未上架|不支持|下线"] },
    Row {
        family: "length", things: "上下文|长度|输入|prompt", faults: &["过长|超出|超过|超长|压缩"]
    },
    Row {
        family: "overload",
        things: "服务|服务器|上游|系统|渠道",
        faults: &["故障|繁忙|异常|失败|空响应|不可用|超时"],
    },
    Row {
        family: "image",
        things: "image|images|picture|media|vision|webp|png|jpeg",
        faults: &[
            EXCEEDED,
            "invalid|unsupported|not supported|not support|not currently supported|could not|cannot|failed|corrupt|corrupted|\
             unable|does not match|download|maximum|at most|not a valid|must|only supports|expired",
        ],
    },
    Row {
        family: "document",
        things: "pdf|document|attachment|file inputs",
        faults: &[
            EXCEEDED,
            "invalid|unsupported|not supported|not currently supported|could not|cannot|failed|corrupt|password|pages|\
             encrypted|maximum|at most|empty|not valid",
        ],
    },
    Row {
        family: "network",
        things: "connection|connect|socket|websocket|server|host|hostname|nodename|servname|dns|stream|peer|tunnel|proxy|gateway|\
                 ssl|tls|network|download|name or service",
        faults: &[
            "closed|refused|reset|dropped|disconnected|ended|terminated|timed out|timeout|lost|aborted|abnormal|\
                   unreachable|interrupted|failure|failed|not known|without sending|hang up|broken|not open|no response|\
                   cancelled|canceled",
        ],
    },
    Row {
        family: "network",
        things: "request|client|read|operation|call|agent",
        faults: &[
            "timed out|timeout|aborted|cancelled|canceled|closed|ended|no response|disconnected|without sending",
        ],
    },
    Row {
        family: "setting",
        things: "temperature|top p|top k|logprobs|top logprobs|toplogprobs|seed|schema|grammar|parser|reasoning effort|effort|\
                 reasoning is|requires reasoning|tool choice|toolchoice|prompt cache retention|stop sequences|response format|\
                 instructions|option|parameter|flag|config|configuration|processor|converter|training stage|file types|\
                 streaming|val size|verbosity|parallel tool calls|max tokens|max completion tokens|max output tokens|\
                 thinking budget|service tier|mcp|function calling|tool calling|packing|strategy|chat template|region|\
                 eot token|session turns|turns|dataset info|minimum",
        faults: &[REFUSED, "exceeded|reached|too small"],
    },
    Row {
        family: "setting",
        things: "provider|providers|agent|client|capability",
        faults: &["configure at least|not configured|no default|does not support"],
    },
    Row { family: "training", things: "keys|columns|features", faults: &["mismatch|do not match"] },
    Row {
        family: "twice",
        things: "id|ids|item|tool response|tool call id",
        faults: &["duplicate|duplicated|unique|already"],
    },
    Row {
        family: "empty",
        things: "content|text|message|messages|part|parts|prompt|block|blocks|role assistant|role user",
        faults: &["empty|blank|null|non-empty|at least one|nonempty|non-whitespace"],
    },
    Row {
        family: "role-order",
        things: "role|roles|history message|last message|first message",
        faults: &["must|expects|expected|unexpected|unknown|invalid|alternate"],
    },
    Row {
        family: "length",
        things: "token|tokens|context|input|prompt|conversation|length|window|message|request",
        faults: &[EXCEEDED],
    },
    Row {
        family: "lost",
        things: "session|sessions|conversation|thread|rollout|checkpoint|session identifier|session id|workspace|cwd",
        faults: &[
            "invalid session|still active|already being|not found|does not exist|no longer exists|missing|could not be found|cannot find|failed to load|\
                   failed to resume|failed to restore|failed to open|no saved|no previous|no active|unknown|deleted|gone|\
                   unable|nothing to resume",
        ],
    },
    Row {
        family: "model",
        things: "model|models|deployment|endpoint|endpoints|page|route|engine|entity|entities",
        faults: &[REFUSED, "no|not exist|none"],
    },
    Row {
        family: "training",
        things: "example|examples|sample|samples|row|rows|dataset|datasets|jsonl|turn|tokenizer",
        faults: &[REFUSED, "abnormal|skipping|empty|null|audit"],
    },
    Row {
        family: "overload",
        things: "server|servers|service|provider|model|engine|upstream|summarization|response|llm|json|chunk|segment|application",
        faults: &[
            "overloaded|busy|unavailable|not ready|unresponsive|capacity|failed|failure|unable|internal|crash|down|\
                   try again|loading|empty|incomplete|no data|stopped|malformed",
        ],
    },
];

/// The family of the first row that a folded text holds.
pub(super) fn family(text: &str, facts: Facts) -> Option<&'static Family> {
    let clauses = || text.split(['{', '}', ';', '!', '?']).flat_map(|part| part.split(". "));
    ROWS.iter().find_map(|row| {
        let is_told = clauses()
            .any(|clause| holds(clause, row.things) && row.faults.iter().any(|faults| holds(clause, faults)));
        let family = FAMILIES.iter().find(|family| is_told && family.name == row.family)?;
        (facts.allow(family) && facts.allow_weak(family)).then_some(family)
    })
}

/// Whether one of several words stands in a clause.
fn holds(clause: &str, words: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    words.split('|').any(|word| {
        clause.match_indices(word).any(|(at, _)| {
            !is_word(clause[..at].chars().next_back()) && !is_word(clause[at + word.len()..].chars().next())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{Facts, ROWS, family};
    use crate::refusal::families::FAMILIES;
    use crate::refusal::pattern::folded;

    #[test]
    fn a_thing_and_a_fault_in_one_clause_are_enough() {
        for (text, found) in [
            ("The key has been revoked", Some("login")),
            ("could not validate credentials", Some("login")),
            ("Name or service not known", Some("network")),
            ("Weekly limit reached for tokens", Some("rate")),
            ("the context of 5 tokens is longer than the model takes", Some("length")),
            ("the key. It was revoked", None),
            ("monkey revoked", None),
        ] {
            let of = family(&folded(text), Facts::default());
            assert_eq!(of.map(|family| family.name), found, "{text}");
        }
    }

    #[test]
    fn a_refused_request_is_no_overload() {
        let facts = |status| Facts { status: Some(status), ..Facts::default() };
        assert!(family("the provider failed", facts(400)).is_none());
        assert!(family("the provider failed", facts(503)).is_some());
    }

    #[test]
    fn rows_name_families_and_are_folded() {
        for row in ROWS {
            assert!(FAMILIES.iter().any(|family| family.name == row.family), "{}", row.family);
            for words in [row.things].iter().chain(row.faults) {
                assert_eq!(&folded(words), words);
                assert!(words.split('|').all(|word| word == word.trim() && !word.is_empty()), "{words}");
            }
        }
    }
}
