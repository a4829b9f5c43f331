//! The test cases of the systems that the profiles are from, by the names that those systems give them: on sessions
//! in pi's dialect, and in numbers.
#![expect(
    clippy::needless_pass_by_value,
    reason = "what is written where it is used reads better without a reference"
)]

use super::{PROFILES, find};
use crate::examine::mend::{examine, mend};
use crate::model::finding::{Held, Safety};
use crate::model::policy::{CutShape, Kept, Policy, Selection};
use crate::model::situation::{Case, Situation};
use crate::plan::Rendered;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use serde_json::{Value, json};
use spans::cut::CutLines;
use spans::source::Source;
use spans::source::Span;
use spans::source::read_span;

/// A session in the making: one message after the other.
struct ProfileStory(Vec<Value>);

impl ProfileStory {
    fn new() -> Self {
        Self(vec![json!({"type": "session", "version": 3, "id": "s", "cwd": "/w"})])
    }

    fn add(mut self, message: Value) -> Self {
        let n = self.0.len();
        let parent = if n == 1 { Value::Null } else { json!(format!("e{}", n - 1)) };
        self.0
            .push(json!({"type": "message", "id": format!("e{n}"), "parentId": parent, "message": message}));
        self
    }

    fn user(self, text: &str) -> Self {
        self.add(json!({"role": "user", "content": [{"type": "text", "text": text}]}))
    }

    fn said(self, text: &str) -> Self {
        self.add(
            json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop"}),
        )
    }

    fn calls(self, calls: &[&str]) -> Self {
        let call = |id: &&str| json!({"type": "toolCall", "id": id, "name": "fetch", "arguments": {}});
        let calls: Vec<Value> = calls.iter().map(call).collect();
        self.add(json!({"role": "assistant", "content": calls, "stopReason": "toolUse"}))
    }

    fn result_of(self, call: &str, tool: &str, content: Value) -> Self {
        self.add(json!({"role": "toolResult", "toolCallId": call, "toolName": tool, "content": content}))
    }

    fn result(self, call: &str, text: &str) -> Self {
        self.result_of(call, "fetch", json!([{"type": "text", "text": text}]))
    }

    /// A call and its result.
    fn turn(self, call: &str, tool: &str, text: &str) -> Self {
        self.calls(&[call]).result_of(call, tool, json!([{"type": "text", "text": text}]))
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|line| (line.to_string() + "\n").into_bytes()).collect()
    }

    /// The messages as the policy leaves them. A second run changes nothing.
    #[track_caller]
    fn under<'a>(&self, case: impl Into<Case<'a>>) -> Vec<Value> {
        let case = case.into();
        let once = mended(&self.bytes(), case);
        assert_eq!(mended(&once, case), once);
        let lines = once.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).skip(1);
        lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()["message"].take()).collect()
    }

    /// What is left of each text of a result.
    #[track_caller]
    fn left<'a>(&self, case: impl Into<Case<'a>>) -> Vec<CutText> {
        let messages = self.under(case);
        let results = messages.iter().filter(|message| message["role"] == "toolResult");
        results.flat_map(|result| texts(&result["content"])).map(|text| CutText::parse(&text)).collect()
    }
}

fn mended(bytes: &[u8], case: Case<'_>) -> Vec<u8> {
    let plan = mend(&bytes, case).unwrap().repair.unwrap().plan;
    let rendered = Rendered::new(&bytes, &plan);
    read_span(&rendered, Span::new(0, rendered.len())).unwrap()
}

fn texts(content: &Value) -> Vec<String> {
    if let Some(text) = content.as_str() {
        return vec![text.into()];
    }
    let blocks = content.as_array().into_iter().flatten();
    blocks.filter_map(|block| Some(block["text"].as_str()?.to_string())).collect()
}

/// Units at the beginning, omitted, at the end; all of it ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CutText {
    Whole(usize),
    Cut(usize, u64, usize),
}
use CutText::{Cut, Whole};

impl CutText {
    fn parse(text: &str) -> Self {
        let Some((head, rest)) = text.split_once("[tailor: ") else { return Whole(text.len()) };
        let (omitted, rest) = rest.split_once(" of ").unwrap();
        let (total, _) = rest.split_once(" chars").unwrap();
        let (_, tail) = rest.split_once(']').unwrap();
        let (omitted, total): (u64, usize) = (omitted.parse().unwrap(), total.parse().unwrap());
        // A line break of ours in front of the marker, where no line ended.
        let kept = total - omitted as usize;
        let tail = tail.len().saturating_sub(1);
        assert!(head.len() + tail == kept || head.len() + tail == kept + 1, "{text}");
        Cut(kept - tail, omitted, tail)
    }
}

fn policy(name: &str) -> Policy {
    find(name).unwrap().policy()
}

fn xs(count: usize) -> String {
    "x".repeat(count)
}

#[test]
fn names_are_found_and_the_default_is_the_default() {
    assert_eq!(policy("default"), Policy::default());
    for profile in PROFILES {
        assert_eq!(find(profile.name).unwrap().name, profile.name);
        assert!(!profile.what.is_empty() && !profile.source.is_empty());
    }
    assert!(find("chat").is_none());
}

/// The messages of a story once it was mended: `u`, `a` with its calls, `r` with its call, `s` for one put in.
#[track_caller]
fn told(story: &ProfileStory, policy: &Policy) -> String {
    let allow = ["P1", "P2", "P5"].map(String::from).to_vec();
    let selection = Selection { allow, ..Selection::default() };
    let messages = story.under(&Policy { selection, ..policy.clone() });
    let word = |message: &Value| match message["role"].as_str().unwrap() {
        "assistant" => {
            let ids = message["content"].as_array().unwrap().iter().filter_map(|block| block["id"].as_str());
            format!("a{}", ids.collect::<String>())
        }
        "toolResult" => {
            let text = &texts(&message["content"])[0];
            let invented = text.starts_with("[tailor: tool result missing");
            assert!(!invented || message["isError"] == true);
            let letter = if invented {
                's'
            } else if text.starts_with("[openclaw]") {
                'o'
            } else {
                'r'
            };
            format!("{letter}{}", message["toolCallId"].as_str().unwrap())
        }
        _ => "u".into(),
    };
    messages.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// What OpenClaw puts in for a result that was lost.
const OPENCLAW_SYNTHETIC: &str = "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair.";

/// `session-transcript-repair.test.ts` and `session-tool-result-guard.test.ts`, as far as files tell what they are about.
#[test]
fn openclaw_transcript_repair() {
    let go = || ProfileStory::new().user("go");
    let real = |story: ProfileStory, call: &str| story.result(call, "real");
    let invented = |story: ProfileStory, call: &str| story.result(call, OPENCLAW_SYNTHETIC);
    let broken = json!({"role": "assistant", "content": [], "stopReason": "error"});
    let stopped = |reason: &str| {
        let call = json!([{"type": "toolCall", "id": "1", "name": "read", "arguments": {}}]);
        go().add(json!({"role": "assistant", "content": call, "stopReason": reason}))
    };
    for (case, story, expected) in [
        (
            "moves results and inserts missing",
            real(go().calls(&["1", "2"]).user("hm"), "2").said("ok"),
            "u a12 s1 r2 u a",
        ),
        (
            "keeps matched parallel, synthesise siblings",
            real(go().calls(&["1", "2", "3"]).user("hm"), "2").said("ok"),
            "u a123 s1 s3 r2 u a",
        ),
        (
            "display turn first",
            real(real(go().calls(&["search", "status"]).said("look"), "status"), "search").user("ok"),
            "u asearchstatus rstatus rsearch a u",
        ),
        (
            "late real results move ahead",
            real(real(go().calls(&["1"]).calls(&["2"]), "1"), "2"),
            "u a1 r1 a2 r2",
        ),
        ("duplicate in span", real(real(go().calls(&["1"]), "1"), "1"), "u a1 r1"),
        ("duplicate across transcript", real(real(go().calls(&["1"]), "1").said("ok"), "1"), "u a1 r1 a"),
        ("orphan", real(go(), "orphan").said("ok"), "u a"),
        ("stopReason error", stopped("error").user("hm"), "u a1 u"),
        ("stopReason aborted", stopped("aborted").user("hm"), "u a1 u"),
        ("stopReason toolUse", stopped("toolUse").user("hm"), "u a1 s1 u"),
        ("result after aborted", real(stopped("aborted"), "1"), "u a1 r1"),
        (
            "synthetic then real",
            real(invented(go().calls(&["1"]), "1").user("hm"), "1").said("ok"),
            "u a1 r1 u a",
        ),
        ("real then synthetic", invented(real(go().calls(&["1"]), "1"), "1"), "u a1 r1"),
        ("span synthetic to real", real(invented(go().calls(&["1"]), "1"), "1"), "u a1 r1"),
        (
            "late real after another assistant's calls",
            real(real(invented(go().calls(&["1"]), "1").calls(&["2"]), "2"), "1").said("ok"),
            "u a1 r1 a2 r2 a",
        ),
        ("two reals", go().calls(&["1"]).result("1", "first").result("1", "second"), "u a1 r1"),
        ("two synthetics", invented(invented(go().calls(&["1"]), "1"), "1"), "u a1 o1"),
        (
            "real error \"aborted\" without marker",
            go().calls(&["1"]).result("1", "aborted").result("1", "real"),
            "u a1 r1",
        ),
        (
            "real error text = default marker + extra",
            go().calls(&["1"]).result("1", &format!("{OPENCLAW_SYNTHETIC} And more.")).result("1", "real"),
            "u a1 r1",
        ),
        ("pending + assistant error text", go().calls(&["1"]).said("failed"), "u a1 s1 a"),
        ("no result then an error turn", go().calls(&["1"]).add(broken), "u a1 s1 a"),
        ("matching result present", real(go().calls(&["1"]), "1").said("ok"), "u a1 r1 a"),
        ("two calls, one result, then text", real(go().calls(&["1", "2"]), "1").said("ok"), "u a12 s2 r1 a"),
        ("new tool-call turn while pending", real(go().calls(&["1"]).calls(&["2"]), "1"), "u a1 a2 r1"),
    ] {
        assert_eq!(told(&story, &policy("default")), expected, "{case}");
    }
}

/// `tool_result_pairing_test.go`: messages as `u`, `a` with its calls, `r` with its call, `s` for one put in.
#[test]
fn chatcli_pairing() {
    let told = |story: ProfileStory| told(&story, &policy("chatcli"));
    let go = || ProfileStory::new().user("go");
    let both = |story: ProfileStory| story.result("0", "zero").result("1", "one");
    for (case, story, expected) in [
        ("ValidHistoryUnchanged", both(go().calls(&["0", "1"])).said("ok"), "u a01 r0 r1 a"),
        (
            "DuplicateIDsAcrossTurns_SecondBlockDangling",
            both(go().calls(&["0", "1"])).calls(&["0", "1"]).user("well?"),
            "u a01 r0 r1 a01 s0 s1 u",
        ),
        (
            "DanglingFirstBlock_LaterBlockAnswered",
            both(ProfileStory::new().calls(&["0", "1"]).user("well?").calls(&["0", "1"])).said("ok"),
            "a01 s0 s1 u a01 r0 r1 a",
        ),
        (
            "InterposedMessageRelocatesResults",
            both(ProfileStory::new().calls(&["0", "1"]).user("hm")).said("ok"),
            "a01 r0 r1 u a",
        ),
        ("OrphanResultRemoved", go().result("ghost", "?").said("ok"), "u a"),
        (
            "PartialResultsGetSynthetics, once somebody has spoken: right behind the calls, so that nothing moves",
            ProfileStory::new().calls(&["0", "1", "2"]).result("0", "zero").user("well?"),
            "a012 s1 s2 r0 u",
        ),
        (
            "PartialResultsGetSynthetics, while the tools may be running",
            ProfileStory::new().calls(&["0", "1", "2"]).result("0", "zero"),
            "a012 r0",
        ),
        (
            "IntraMessageDuplicatePruned",
            ProfileStory::new().calls(&["0", "0"]).result("0", "zero").said("ok"),
            "a0 r0 a",
        ),
        (
            "ResultBeyondNextAssistantNotClaimed: a real result is moved, and none is invented",
            go().calls(&["0"]).said("hm").result("0", "zero").said("ok"),
            "u a0 r0 a a",
        ),
        ("SyntheticsAreErrorMarked", ProfileStory::new().calls(&["0"]).user("well?"), "a0 s0 u"),
        (
            "OutOfOrderAdjacentIsValid",
            ProfileStory::new().calls(&["0", "1"]).result("1", "one").result("0", "zero").said("ok"),
            "a01 r1 r0 a",
        ),
    ] {
        assert_eq!(told(story), expected, "{case}");
    }
}

/// `TruncateForLLM` and its caps, and the golden numbers of the budget.
#[test]
fn chatcli_caps() {
    let chatcli = policy("chatcli");
    let small = |chars_max: u64| {
        let mut policy = policy("chatcli");
        policy.tool_caps.retain(|own| own.tool == "*");
        policy.tool_caps[0].cap.chars_max = chars_max;
        policy
    };
    let one = |tool: &str, text: &str| ProfileStory::new().user("go").turn("c", tool, text).said("ok");
    let thousands = format!("{}{}{}", "a".repeat(10_000), "b".repeat(5_000), "c".repeat(1_000));
    for (case, story, policy, expected) in [
        ("short", one("fetch", "short"), &small(1_000), Whole(5)),
        ("Oversize", one("fetch", &thousands), &small(8_000), Cut(5_000, 10_000, 1_000)),
        ("SmallCap: from the beginning only", one("fetch", &xs(1_000)), &small(100), Cut(100, 900, 0)),
        ("builtin cap of the rest", one("fetch", &xs(30_001)), &chatcli, Cut(5_000, 24_001, 1_000)),
        ("builtin cap of @read", one("@read", &xs(80_001)), &chatcli, Cut(5_000, 74_001, 1_000)),
        ("builtin cap of @search", one("search", &xs(60_001)), &chatcli, Cut(5_000, 54_001, 1_000)),
        ("builtin cap of @tree", one("tree", &xs(50_001)), &chatcli, Cut(5_000, 44_001, 1_000)),
        ("below its cap the budget counts", one("read", &xs(80_000)), &chatcli, Cut(4_000, 75_000, 1_000)),
        ("budget, 30,000 x", one("fetch", &xs(30_000)), &chatcli, Cut(4_000, 25_000, 1_000)),
        (
            "budget, 400 lines of 80: the tail ends at a line, which their count forgets",
            one("read", &("y".repeat(79) + "\n").repeat(400)),
            &chatcli,
            Cut(4_000, 27_040, 960),
        ),
        ("budget, exactly", one("fetch", &xs(20_000)), &chatcli, Whole(20_000)),
    ] {
        assert_eq!(story.left(policy), [expected], "{case}");
    }
}

/// `EnforceToolResultBudget`, pass 2.
#[test]
fn chatcli_turn_budget() {
    let turn = |sizes: &[usize]| {
        let ids: Vec<String> = (0..sizes.len()).map(|n| n.to_string()).collect();
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        let results = ids.iter().zip(sizes);
        results.fold(ProfileStory::new().user("go").calls(&names), |story, (id, &size)| {
            story.result(id, &xs(size))
        })
    };
    let small = Policy { turn_chars_max: 30_000, ..policy("chatcli") };
    let left = turn(&[9_000, 16_000, 5_000, 12_000]).said("ok").left(&small);
    let cut = |size: u64| Cut(4_000, size - 5_000, 1_000);
    assert_eq!(left, [Whole(9_000), cut(16_000), Whole(5_000), cut(12_000)], "the largest first");
    // `a target of less than 5,200 is never asked for`, so results of no more than that stay.
    let tight = Policy { turn_chars_max: 6_000, ..policy("chatcli") };
    assert_eq!(turn(&[5_200, 5_200]).said("ok").left(&tight), [Whole(5_200), Whole(5_200)]);
    let found = examine(&&turn(&[5_200, 5_200]).said("ok").bytes()[..], &tight).unwrap();
    assert!(found.findings.iter().any(|finding| finding.message.contains("each at its minimum")));
}

/// `microcompact_test.go`, and the golden numbers.
#[test]
fn chatcli_microcompact() {
    let aged = |text: &str, turns: usize| {
        let story = ProfileStory::new().user("go").turn("c", "fetch", text);
        (0..turns).fold(story, |story, _| story.said("on"))
    };
    let lines = "line of important tool output\n".repeat(300);
    let head = policy("chatcli-head");
    for (case, story, expected) in [
        ("age 1", aged(&xs(9_000), 1), Whole(9_000)),
        ("Truncate: 9,000 x", aged(&xs(9_000), 2), Cut(2_000, 6_500, 500)),
        ("Truncate: 300 lines of 30", aged(&lines, 2), Cut(1_980, 6_540, 480)),
        ("age 3", aged(&xs(9_000), 3), Cut(2_000, 6_500, 500)),
        ("Summarize", aged(&xs(9_000), 4), Cut(0, 9_000, 0)),
        ("below 3,000", aged(&xs(2_999), 4), Whole(2_999)),
        ("exactly 3,000", aged(&xs(3_000), 4), Cut(0, 3_000, 0)),
    ] {
        assert_eq!(story.left(&head), [expected], "{case}");
    }
    // `…Summarize carries marker`, and what their defaults never do: what was cut at age 2 is one line at age 4, and
    // names the same original.
    let id = |text: &str| text.split_once("tailor show ").unwrap().1[..12].to_string();
    let once = aged(&lines, 2).under(&head)[2]["content"][0]["text"].as_str().unwrap().to_string();
    let again = aged(&once, 4).under(&head)[2]["content"][0]["text"].as_str().unwrap().to_string();
    assert!(again.starts_with("[tailor: 9000 of 9000 chars omitted (text); "), "{again}");
    assert_eq!(id(&once), id(&again));
    // `…PlainUserUntouched`
    let user = ProfileStory::new().user(&xs(16_000)).said("1").said("2").said("3").said("4");
    assert_eq!(user.under(&head)[0]["content"][0]["text"], xs(16_000));
}

/// `context.test.ts` and `claude-subagent.test.ts`.
#[test]
fn agent_max() {
    let fresh = |turns| {
        let mut policy = policy("agent-max");
        policy.stale.clear_at = turns;
        policy
    };
    let r = |story: ProfileStory, call: &str| story.turn(call, "fetch", &xs(5_000));
    let us = |story: ProfileStory, count: usize| (0..count).fold(story, |story, _| story.user("go on"));
    let new = ProfileStory::new;
    let stub = || Cut(200, 4_800, 0);
    for (case, story, turns, expected) in [
        ("no-op under freshTurns", us(r(us(new(), 1), "c"), 1), 4, vec![Whole(5_000)]),
        ("prunes older", us(r(us(r(us(new(), 1), "c"), 2), "d"), 2), 2, vec![stub(), stub()]),
        ("keeps fresh", r(us(new(), 2), "c"), 2, vec![Whole(5_000)]),
        ("small stale", us(us(new(), 1).turn("c", "fetch", "hello"), 1), 1, vec![Whole(5)]),
        ("400 is small", us(us(new(), 1).turn("c", "fetch", &xs(400)), 4), 4, vec![Whole(400)]),
        ("stub of run_shell", us(us(new(), 1).turn("c", "run_shell", &xs(5_000)), 4), 4, vec![stub()]),
    ] {
        assert_eq!(story.left(&fresh(turns)), expected, "{case}");
    }
    let stub = us(us(new(), 1).turn("c", "run_shell", &xs(5_000)), 4).under(&fresh(4));
    let stub = (stub[2]["toolCallId"].clone(), stub[2]["content"][0]["text"].as_str().unwrap().to_string());
    assert!(
        stub.0 == "c" && stub.1.contains("[tailor: 4800 of 5000 chars omitted (run_shell); "),
        "{stub:?}"
    );

    let now = |tool: &str, text: &str| us(new(), 1).turn("c", tool, text).left(&policy("agent-max"));
    let lines = |count: usize| "row\n".repeat(count);
    for (case, tool, text, expected) in [
        ("truncateOutput within", "claude-subagent", xs(14_999), Whole(14_999)),
        ("truncateOutput exact", "claude-subagent", xs(15_000), Whole(15_000)),
        ("head and tail", "claude-subagent", xs(28_000), Cut(10_500, 13_000, 4_500)),
        ("run_shell", "run_shell", xs(20_000), Cut(7_000, 10_000, 3_000)),
        ("read_file, characters", "read_file", xs(25_000), Cut(20_000, 5_000, 0)),
        ("read_file, lines", "read_file", lines(900), Cut(2_000, 1_600, 0)),
        ("read_file, 500 lines", "read_file", lines(500), Whole(2_000)),
        ("read_file, 501 lines", "read_file", lines(500) + &xs(400), Cut(2_000, 400, 0)),
        ("no cap of other tools", "fetch", xs(90_000), Whole(90_000)),
    ] {
        assert_eq!(now(tool, &text), [expected], "{case}");
    }
    // The paging hint of `read_file`: lines that are shown, behind those that the call left out.
    let hint = |arguments: Value, text: String| {
        let call = json!([{"type": "toolCall", "id": "c", "name": "read_file", "arguments": arguments}]);
        let story = new().add(json!({"role": "assistant", "content": call, "stopReason": "toolUse"}));
        let story = story.result_of("c", "read_file", json!(text)).said("ok");
        let content = story.under(&policy("agent-max"))[1]["content"].as_str().unwrap().to_string();
        content.split_once("(read on with offset ").unwrap().1.split_once(')').unwrap().0.to_string()
    };
    assert_eq!(hint(json!({}), lines(900)), "500");
    assert_eq!(hint(json!({"offset": 1_000}), lines(900)), "1500");
    assert_eq!(hint(json!({"offset": 7}), (xs(999) + "\n").repeat(30)), "27");
}

/// The cap of #5057, and the pruner's `context-pruning.test.ts` and `pruner.test.ts`, with texts that outweigh a
/// marker: `n` units there are `100 n` here.
#[test]
fn openclaw_5057() {
    let base = policy("openclaw-5057");
    let cap = |chars_max| Policy { result_chars_max: chars_max, ..base.clone() };
    let one = |content: Value| {
        ProfileStory::new().user("go").calls(&["c"]).result_of("c", "fetch", content).said("ok")
    };
    let text = |text: String| json!([{"type": "text", "text": text}]);
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    assert_eq!(one(text(xs(1_000))).left(&cap(1_000)), [Whole(1_000)], "no-op under cap");
    let both = [Cut(30_000, 40_000, 20_000)];
    assert_eq!(one(text(xs(90_000))).left(&base), both, "truncates with head and tail");
    assert_eq!(one(text(xs(90_000))).left(&cap(0)), [Whole(90_000)], "maxChars 0 disables");
    let with_image = json!([image, {"type": "text", "text": xs(90_000)}]);
    assert_eq!(one(with_image).left(&base), [Whole(90_000)], "image results skipped");
    let several =
        ProfileStory::new().user("go").calls(&["c", "d"]).result("c", &xs(60_000)).result("d", &xs(70_000));
    let both = [Cut(30_000, 10_000, 20_000), Cut(30_000, 20_000, 20_000)];
    assert_eq!(several.said("ok").left(&base), both, "several results in one pass");

    let mut eager = base.clone();
    eager.window_tokens = Some(100);
    eager.crowded = crate::model::policy::Crowded {
        trim_percent: 1,
        trim_chars_max: 1_000,
        head_chars: 300,
        tail_chars: 300,
        clear_percent: 1,
        clear_chars_min: 0,
        keep_assistants: 0,
        cache_ttl_ms: 0,
        counts_quarters: true,
    };
    let t = |story: ProfileStory, call: &str| story.turn(call, "fetch", &xs(2_000));
    let go = || ProfileStory::new().user("go");
    let keep = |count| {
        let mut policy = eager.clone();
        policy.crowded.keep_assistants = count;
        policy
    };
    let four = || t(t(t(t(go(), "a"), "b"), "c"), "d");
    let (whole, cleared) = (|| Whole(2_000), || Cut(0, 2_000, 0));
    assert_eq!(four().left(&keep(3)), [cleared(), whole(), whole(), whole()], "keepLast 3 of 4 turns");
    assert_eq!(t(go(), "a").left(&keep(3)), [whole()], "fewer than keepLast");
    let boot = t(t(ProfileStory::new(), "a").user("go"), "b");
    assert_eq!(boot.left(&eager), [whole(), cleared()], "before first user");
    let mut trim = eager.clone();
    trim.crowded.clear_percent = 0;
    assert_eq!(t(go(), "a").left(&trim), [Cut(300, 1_400, 300)], "both ends");
    trim.crowded = crate::model::policy::Crowded { head_chars: 701, tail_chars: 300, ..trim.crowded };
    let blocks = json!([{"type": "text", "text": xs(500)}, {"type": "text", "text": xs(900)}]);
    let across = go().calls(&["a"]).result_of("a", "fetch", blocks).left(&trim);
    assert_eq!(across, [Whole(500), Cut(200, 400, 300)], "across blocks, with a line break between");
    let tools = Policy {
        tools_only: vec!["ex*".into(), "fetch".into()],
        tools_keep: vec!["exec".into()],
        ..eager.clone()
    };
    let named =
        go().turn("a", "Exec", &xs(2_000)).turn("b", "Browser", &xs(2_000)).turn("c", "Fetch", &xs(2_000));
    assert_eq!(named.left(&tools), [whole(), whole(), cleared()], "deny wins, any case");
    assert_eq!(t(go(), "a").left(&base), [whole()], "a window that is not full");
    // `hard clear, keep 1`; the window is an argument in all of them: `window override with model undefined`.
    let three = t(t(t(go(), "a"), "b"), "c");
    assert_eq!(three.left(&keep(1)), [cleared(), cleared(), whole()]);
    // `image in soft trim`, `image and text`, `image only`, `hard clear with image`
    let pictured = json!([image, {"type": "text", "text": xs(2_000)}]);
    let pictured = go().calls(&["a"]).result_of("a", "fetch", pictured).calls(&["b"]);
    let pictured = pictured.result_of("b", "fetch", json!([image])).said("ok");
    assert_eq!(pictured.left(&eager), [whole()], "nothing happens to results that hold images");
}

/// The gate by the age of the cache: `ttl expired`, `ttl window`. The clock is an argument.
#[test]
fn openclaw_5057_ttl() {
    let mut eager = policy("openclaw-5057");
    assert_eq!(eager.crowded.cache_ttl_ms, 5 * 60 * 1_000);
    eager.window_tokens = Some(100);
    (eager.crowded.keep_assistants, eager.crowded.clear_chars_min) = (0, 0);
    let spoke_at = |time: Value| {
        let said =
            json!({"role": "assistant", "content": [{"type": "text", "text": "ok"}], "timestamp": time});
        ProfileStory::new().user("go").turn("a", "fetch", &xs(9_000)).add(said)
    };
    let now = 1_782_900_000_000_u64;
    for (case, written, ttl_ms, expected) in [
        ("ttl expired", json!(now - 300_000), 300_000, Cut(0, 9_000, 0)),
        ("ttl window", json!(now - 299_999), 300_000, Whole(9_000)),
        ("a time to come", json!(now + 60_000), 300_000, Whole(9_000)),
        ("nobody knows when", Value::Null, 300_000, Whole(9_000)),
        ("ttl 0", json!(now), 0, Cut(0, 9_000, 0)),
    ] {
        let mut policy = eager.clone();
        policy.crowded.cache_ttl_ms = ttl_ms;
        let situation = Situation { now_ms: Some(now), ..Situation::default() };
        let at = Case { policy: &policy, situation: &situation };
        let story = spoke_at(written);
        assert_eq!(story.left(at), [expected], "{case}");
        let held = examine(&&story.bytes()[..], at).unwrap().findings.into_iter();
        let held = held.filter(|finding| finding.fix.safety == Safety::Held(Held::WarmCache)).count();
        assert_eq!(held, usize::from(expected == Whole(9_000)), "{case}: it says why");
    }
}

/// `caps even when the TTL has not expired`. What rewrites history waits if that is asked for; caps and pairing do not.
#[test]
fn history_is_held_for_a_while() {
    let story = ProfileStory::new().user("go").turn("c", "fetch", &xs(9_000)).turn("d", "fetch", &xs(60_000));
    let story = story.said("1").said("2").said("3").said("4").result("ghost", "?").said("ok");
    let (policy, situation) = (policy("chatcli"), Situation { hold_history: true, ..Situation::default() });
    let holding = Case { policy: &policy, situation: &situation };
    let cut = Cut(5_000, 54_000, 1_000);
    assert_eq!(story.left(holding), [Whole(9_000), cut]);
    let found = examine(&&story.bytes()[..], holding).unwrap().findings;
    let held = |finding: &&crate::Finding| finding.fix.safety == Safety::Held(Held::RecentlyUsed);
    assert!(found.iter().filter(held).all(|finding| finding.rule.code() == "S14"));
    assert_eq!(found.iter().filter(held).count(), 2);
    assert_eq!(story.left(&policy), [Cut(0, 9_000, 0), Cut(0, 60_000, 0)]);
}

/// `CJK counts four characters` each: 500 of them fill a window of 400 tokens, 500 letters do not.
#[test]
fn openclaw_5057_dense_text() {
    let mut policy = policy("openclaw-5057");
    policy.window_tokens = Some(400);
    policy.crowded.keep_assistants = 0;
    (policy.crowded.trim_percent, policy.crowded.clear_percent, policy.crowded.clear_chars_min) =
        (100, 100, 0);
    let text = |text: &str| {
        let story = ProfileStory::new().user("go").turn("a", "fetch", text);
        story.under(&policy)[2]["content"][0]["text"].as_str().unwrap().to_string()
    };
    assert_eq!(text(&xs(500)), xs(500));
    assert!(text(&"\u{20000}".repeat(500)).starts_with("[tailor: 1000 of 1000 chars omitted; "));
}

/// `session-tool-result-guard` of #10915: their limit of 100 is 1,000 here, so that a marker is shorter than what it
/// stands for.
#[test]
fn openclaw_10915() {
    let base = policy("openclaw-10915");
    assert_eq!(base.result_chars_max, 32_000);
    assert_eq!(base.shape, CutShape { kept: Kept::Percent(100), lines: CutLines::Anywhere });
    let guard = Policy { result_chars_max: 1_000, ..base.clone() };
    let one = |content: Value| {
        ProfileStory::new().user("go").calls(&["c"]).result_of("c", "fetch", content).said("ok")
    };
    let block = |letter: &str, count: usize| json!({"type": "text", "text": letter.repeat(count)});
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    for (case, content, expected) in [
        ("below limit", json!([block("x", 50)]), vec![Whole(50)]),
        ("single oversized", json!([block("x", 2_000)]), vec![Cut(1_000, 1_000, 0)]),
        (
            "budget across blocks",
            json!([block("a", 800), block("b", 800)]),
            vec![Whole(800), Cut(200, 600, 0)],
        ),
        ("zero budget", json!([block("a", 1_000), block("b", 500)]), vec![Whole(1_000), Cut(0, 500, 0)]),
        ("non-text kept", json!([image, block("a", 2_000)]), vec![Cut(1_000, 1_000, 0)]),
        ("string content", json!("x".repeat(2_000)), vec![Cut(1_000, 1_000, 0)]),
        ("string within", json!("short"), vec![Whole(5)]),
        ("missing content", Value::Null, vec![]),
        ("empty array", json!([]), vec![]),
        ("exactly limit", json!([block("x", 1_000)]), vec![Whole(1_000)]),
    ] {
        assert_eq!(one(content).left(&guard), expected, "{case}");
    }
    let images = one(json!([image, block("a", 2_000)])).under(&guard);
    assert_eq!(images[2]["content"][0], image);
    let said = ProfileStory::new().user("go").said(&xs(2_000)).under(&guard);
    assert_eq!(said[1]["content"][0]["text"], xs(2_000), "non-toolResult");
    // `default limit`; and `40,000 at 32,000, second pass`: `left` tries each story twice.
    assert_eq!(one(json!([block("z", 40_000)])).left(&base), [Cut(32_000, 8_000, 0)]);
    // `guard integration oversized`, `small kept`: what is written is cut, or not, by its own length.
    let both = go_small_and_large().left(&guard);
    assert_eq!(both, [Whole(500), Cut(1_000, 4_000, 0)]);
    assert_eq!(one(json!([block("z", 1_000)])).left(&base), [Whole(1_000)], "default option");
}

fn go_small_and_large() -> ProfileStory {
    ProfileStory::new().user("go").turn("c", "fetch", &xs(500)).turn("d", "fetch", &xs(5_000)).said("ok")
}

/// The oversized guard of #10915, and `compaction.test.ts`.
#[test]
fn openclaw_10915_summary_guard() {
    let found = |content: Value, window: u64| {
        let story = ProfileStory::new().add(json!({"role": "user", "content": content})).said("ok");
        let policy = Policy { window_tokens: Some(window), ..policy("openclaw-10915") };
        let found = examine(&&story.bytes()[..], &policy).unwrap();
        found.findings.iter().any(|finding| finding.rule.code() == "S3")
    };
    let block = |count: usize| json!({"type": "text", "text": xs(count)});
    let image = json!({"type": "image", "data": xs(200_000), "mimeType": "image/png"});
    for (case, content, window, expected) in [
        ("string", json!(xs(100_001)), 200_000, true),
        ("array", json!([block(100_001)]), 200_000, true),
        ("multi-block sum", json!([block(60_000), block(60_000)]), 200_000, true),
        ("non-text ignored", json!([image, block(10)]), 200_000, false),
        ("no content", Value::Null, 200_000, false),
        ("empty array", json!([]), 200_000, false),
        ("boundary at limit", json!(xs(100_000)), 200_000, false),
        ("small", json!("small"), 200_000, false),
        ("480,000 characters", json!(xs(480_000)), 200_000, true),
        ("token check still works", json!(xs(4_000)), 2_000, true),
        ("near half of the window", json!(xs(3_200)), 2_000, false),
    ] {
        assert_eq!(found(content, window), expected, "{case}");
    }
}
