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
/// That something is not there, or is not for everybody.
const UNKNOWN: &str = "invalid|unsupported|not supported|not support|not allowed|not permitted|unknown|denied|not available|\
    unavailable|deprecated|disabled|undefined|unrecognized|required|requires|not found|missing|cannot use|only support";
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
        things: "tool result|tool output|tool response|tool call response|tool call result|function response|function call output",
        faults: &["missing|without|never|not received|lacks|lost|ended before|awaiting|required|expected"],
    },
    Row {
        family: "no-call",
        things: "tool message|tool result|tool response|function response|tool output",
        faults: &["preceding|orphan|unmatched|no matching|no corresponding|does not correspond"],
    },
    Row {
        family: "no-result",
        things: "tool call|tool use|function call",
        faults: &[
            "no matching|no result|no response|without result|unanswered|unresolved|dangling|never completed",
        ],
    },
    Row {
        family: "twice",
        things: "id|ids|item|tool response|tool call id",
        faults: &["duplicate|duplicated|unique|already"],
    },
    Row {
        family: "id-form",
        things: "tool call id|call id|tool use id|tooluseid|toolcallid|item id|message id",
        faults: &[EXCEEDED, "invalid|length|characters|format|empty|required|pattern|must be|prefix|must"],
    },
    Row {
        family: "arguments",
        things: "arguments json|json arguments|tool arguments|function arguments|call arguments|tool input",
        faults: &["invalid|malformed|parse|object|not valid|truncated|incomplete|must"],
    },
    Row {
        family: "results-order",
        things: "tool result|tool results|tool result blocks|tool use blocks",
        faults: &["both|same turn|same message"],
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
        family: "filter",
        things: "提示|内容|输入|安全词|安全策略",
        faults: &["拦截|违规|敏感|不当|安全词错误|没有通过|未通过"],
    },
    Row {
        family: "filter",
        things: "safety|content policy|usage policy|usage policies|content filter|content management|moderation|cybersecurity|safeguard|cyber",
        faults: &[
            "blocked|flagged|filtered|rejected|refused|violate|violates|violated|violating|triggering|failed|result of|\
                   risk|prohibited|breach|cannot process|cant process|unable to",
        ],
    },
    Row {
        family: "credit",
        things: "credit|credits|balance|billing|extra usage|paid|prepaid|payment|free tier|free plan|subscription",
        faults: &[
            "can only|insufficient|out of|exhausted|depleted|required|requires|used up|used all|no|not enough|low|too low|restricted|\
                   hard limit|expired|overdue|not available on|not included",
        ],
    },
    Row {
        family: "rate",
        things: "rate|quota|usage|requests|request limit|window|tpm|rpm|tpd|5-hour|7-day|weekly|monthly|daily|hourly|\
                 concurrent|cooldown|cooling|throttled|throttling|resource-exhausted|websocket connections|capacity|per-day|per-minute|per-hour",
        faults: &[
            "exceed|exceeded|exceeds|limit|limited|limits|reached|rejected|exhausted|too many|too quickly|used all|over|\
                   down|hit|resets|reset",
        ],
    },
    Row {
        family: "training",
        things: "keys|columns|features",
        faults: &["mismatch|do not match|dataset|in the example"],
    },
    Row {
        family: "login",
        things: "api key|api-key|apikey|key|credential|credentials|login|log in|logged in|sign in|signed in|oauth|oauth2|\
                 access token|id token|refresh token|auth token|authentication token|session token|ip address|captcha|recaptcha|token refresh|token exchange|clientid|auth|auth type|authtype|\
                 authenticate|authenticated|authentication|authorization|account|permission|permissions|scope|scopes|\
                 certificate|organization|identity",
        faults: &[
            "revoked|expired|disabled|deactivated|suspended|invalid|incorrect|insufficient|denied|missing|required|\
                   requires|not found|could not|not able|unable|failed|not valid|wrong|no|unauthorized|must|rejected|cannot|\
                   unknown|not configured|not provided|without|unavailable|mismatch|check your|timeout|timed out|error|\
                   not currently|not authenticated|invalidated|blocked|not allowed|restricted|not enabled|doesnt match|does not match",
        ],
    },
    Row { family: "login", things: "refresh|exchange", faults: &["token"] },
    Row { family: "credit", things: "余额|额度|账户", faults: &["不足|用完|欠费"] },
    Row {
        family: "rate", things: "请求|速率|频率|并发|配额", faults: &["上限|限制|频繁|过快|用尽"]
    },
    Row {
        family: "login",
        things: "密钥|令牌|认证|权限|账号|分组|key",
        faults: &["无|失败|不足|缺失|过期|错误|禁用|封禁"],
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
        things: "image|images|picture|media|vision|webp|png|jpeg|gif|svg|mime type|mimetype",
        faults: &[
            EXCEEDED,
            "invalid|unsupported|not supported|not support|not currently supported|could not|cannot|failed|corrupt|corrupted|\
             unable|does not match|download|maximum|at most|not a valid|must|only support|expired",
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
                 ssl|tls|network|download|name or service|lookup|internet",
        faults: &[
            "closed|refused|reset|dropped|disconnected|ended|terminated|timed out|timeout|lost|aborted|abnormal|\
                   unreachable|interrupted|failure|failed|not known|without sending|hang up|broken|no such host|not open|no response|\
                   cancelled|canceled",
        ],
    },
    Row { family: "network", things: "connect|reach", faults: &["unable|could not|cannot|failed"] },
    Row { family: "network", things: "request body", faults: &["failed to read|could not read"] },
    Row {
        family: "network",
        things: "request|client|read|operation|call|agent",
        faults: &[
            "timed out|timeout|aborted|cancelled|canceled|closed|ended|no response|disconnected|without sending",
        ],
    },
    Row { family: "setting", things: "number of tools|tools", faults: &[EXCEEDED] },
    Row {
        family: "empty",
        things: "content|text|message|messages|part|parts|prompt|block|blocks|role assistant|role user",
        faults: &["empty|blank|null|non-empty|at least one|nonempty|non-whitespace"],
    },
    Row {
        family: "role-order",
        things: "role|assistant messages|user messages|history message|last message|first message|角色",
        faults: &[
            "must|should|should be|expects|expected|unexpected|unknown|invalid|only|2 or more|multiple|必须|应为|交替",
        ],
    },
    Row {
        family: "role-order",
        things: "user|assistant|messages|role",
        faults: &["alternate|alternates|alternating|alternately|odd number|even number|奇数|交替"],
    },
    Row {
        family: "setting",
        things: "temperature|top p|top k|logprobs|top logprobs|toplogprobs|seed|schema|grammar|parser|reasoning effort|effort|\
                 reasoning is|requires reasoning|tool choice|toolchoice|prompt cache retention|stop sequences|response format|\
                 instructions|option|flag|config|configuration|processor|converter|training stage|file types|\
                 streaming|val size|verbosity|parallel tool calls|max tokens|max completion tokens|max output tokens|\
                 thinking budget|service tier|mcp|function calling|tool calling|packing|strategy|chat template|region|\
                 eot token|session turns|turns|dataset info|minimum|number of tools|tools|toolconfig|tool config|tool type|tool spec|plugin|extension|skill|json mode|beta|n ctx|num ctx",
        faults: &[REFUSED, "exceeded|reached|too small|not yet"],
    },
    Row {
        family: "setting",
        things: "provider|agent|client|capability|instance",
        faults: &[
            "configure at least|not configured|no default|does not support|not provided|not specified|not set|not found|is required",
        ],
    },
    Row {
        family: "length",
        things: "token|tokens|context|input|prompt|conversation|length|window|message|request",
        faults: &[EXCEEDED],
    },
    Row {
        family: "json",
        things: "session|transcript|conversation|history|rollout|context file|chat file|jsonl",
        faults: &["corrupt|damaged|truncated|malformed|unreadable|incompatible|broken"],
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
        things: "model|deployment|endpoint|page|route|engine|entity|entities|api base|base url|url",
        faults: &[UNKNOWN, "no|not exist|none|unloaded|not loaded|verify|not accessible"],
    },
    Row {
        family: "training",
        things: "example|examples|sample|samples|row|rows|dataset|datasets|jsonl|turn|tokenizer",
        faults: &[REFUSED, "abnormal|skipping|empty|null|audit|not in"],
    },
    Row {
        family: "overload",
        things: "model output|model response|llm output|response|completion",
        faults: &["does not contain|did not contain|no json|contains no|not json"],
    },
    Row {
        family: "overload",
        things: "server|service|provider|model|engine|upstream|summarization|response|llm|json|chunk|segment|application",
        faults: &[
            "overloaded|busy|unavailable|not ready|unresponsive|capacity|failed|failure|unable|internal|crash|down|no healthy|\
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

/// What may follow a word of a row: "limit" is also told in "limits", "limited" and "limiting".
const INFLECTIONS: &[&str] = &["", "s", "d", "es", "ed", "ing"];

/// Whether one of several words stands in a clause.
fn holds(clause: &str, words: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    words.split('|').any(|word| {
        clause.match_indices(word).any(|(at, _)| {
            let end = clause[at + word.len()..].split(|c| !is_part(c)).next().unwrap_or_default();
            !clause[..at].ends_with(is_part) && INFLECTIONS.contains(&end)
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
            ("the tools exceeded 128", Some("setting")),
            ("these keys were revoked by limiters", Some("login")),
            ("a keyboard was revoked", None),
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
