//! Small sessions whose numbers are all known.

use super::{Amount, Category, Standing, Weight, weigh};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

const HEADER: &str = r#"{"type":"session","version":3,"id":"s","cwd":"/w"}"#;

/// A pi session of these entries, each the child of the one before.
fn pi(entries: &[String]) -> Vec<u8> {
    let mut text = String::from(HEADER);
    for (n, entry) in entries.iter().enumerate() {
        let parent = if n == 0 { "null".into() } else { format!(r#""e{}""#, n - 1) };
        let _ = write!(text, "\n{{\"id\":\"e{n}\",\"parentId\":{parent},{entry}}}");
    }
    text.push('\n');
    text.into_bytes()
}

fn user(text: &str) -> String {
    format!(r#""type":"message","message":{{"role":"user","content":"{text}"}}"#)
}

fn call(id: &str, name: &str) -> String {
    format!(
        r#""type":"message","message":{{"role":"assistant","model":"gpt-5","content":[{{"type":"toolCall","id":"{id}","name":"{name}","arguments":{{}}}}],"usage":{{"input":70,"output":7,"cacheRead":700,"cacheWrite":0}},"stopReason":"toolUse"}}"#
    )
}

fn result(id: &str, text: &str, details: &str) -> String {
    format!(
        r#""type":"message","message":{{"role":"toolResult","toolCallId":"{id}","toolName":"ls","content":[{{"type":"text","text":"{text}"}}],"details":{details}}}"#
    )
}

fn weighed(bytes: &[u8]) -> Weight {
    weigh(&bytes, 3, &mut |_| None).unwrap()
}

fn part(weight: &Weight, part: Category) -> Amount {
    weight.parts[part as usize].1
}

#[test]
fn each_part_is_told_from_the_others() {
    let copy = format!(r#"{{"copy":"{}"}}"#, "y".repeat(200));
    let bytes = pi(&[user("go on"), call("c", "ls"), result("c", &"x".repeat(400), &copy), user("thanks")]);
    let weight = weighed(&bytes);
    assert_eq!(part(&weight, Category::Results), Amount { count: 1, bytes: 402, tokens: 112 });
    assert_eq!(part(&weight, Category::SideCopies), Amount { count: 1, bytes: copy.len() as u64, tokens: 0 });
    assert_eq!(part(&weight, Category::User), Amount { count: 2, bytes: 7 + 8, tokens: 2 + 2 });
    let block = r#"{"type":"toolCall","id":"c","name":"ls","arguments":{}}"#.len() as u64;
    assert_eq!(
        part(&weight, Category::Calls),
        Amount { count: 1, bytes: block, tokens: (block * 280).div_ceil(1_000) }
    );
    let tool = &weight.tools[0];
    assert_eq!((tool.name.as_str(), tool.calls.count), ("ls", 1));
    assert_eq!((tool.results.bytes, tool.sides.bytes), (402, copy.len() as u64));
    assert_eq!(weight.turns.len(), 3, "what stands before the first question is a turn of its own");
    assert_eq!(weight.context_tokens.counted.map(|counted| (counted.tokens, counted.line)), Some((777, 3)));
    assert_eq!((weight.model.as_str(), weight.tokens_are_exact), ("gpt-5", false));
    let large = &weight.largest[0];
    assert_eq!((large.line, large.tool.as_str(), large.part), (4, "ls", Category::Results));
    assert_eq!((large.turn, large.parts[Category::Results as usize]), (1, 402));
    assert_eq!(large.parts[Category::SideCopies as usize], copy.len() as u64);
    assert_eq!(large.parts.iter().sum::<u64>(), large.amount.bytes);
    assert_eq!(&bytes[large.text.start as usize..][..5], b"\"xxxx");
    let fields: Vec<_> = weight.fields.iter().map(|row| row.name.as_str()).collect();
    assert!(fields.contains(&"message.content[].text") && fields.contains(&"message.details.copy"));
}

/// Otherwise the parts of the results could add up to more than the results.
#[test]
fn an_image_in_a_result_is_not_part_of_its_text() {
    let block = format!(r#"{{"type":"image","mimeType":"image/png","data":"{}"}}"#, "iVBO".repeat(100));
    let shown =
        result("c", "a picture", "{}").replace(r#""}],"details"#, &format!(r#""}},{block}],"details"#));
    let weight = weighed(&pi(&[user("go on"), call("c", "ls"), shown, user("thanks")]));
    let tool = &weight.tools[0];
    assert_eq!(tool.results.tokens, part(&weight, Category::Results).tokens);
    assert_eq!(tool.images.tokens, part(&weight, Category::Images).tokens);
    assert!(tool.images.tokens > 0 && tool.amount().tokens > tool.calls.tokens + tool.results.tokens);
}

#[test]
fn what_a_compaction_left_behind_is_not_in_the_context() {
    let compaction = r#""type":"compaction","summary":"0123456789","firstKeptEntryId":"e2""#;
    let long = "x".repeat(4000);
    let bytes = pi(&[user(&long), call("c", "ls"), user("kept text"), compaction.into(), user("more")]);
    let weight = weighed(&bytes);
    let standing = |standing: Standing| weight.standings[standing as usize].1;
    assert_eq!(standing(Standing::Compacted).count, 2);
    assert_eq!(standing(Standing::Context), Amount { count: 3, tokens: 3 + 3 + 2, ..weight.context() });
    assert_eq!(standing(Standing::Unsent).count, 1, "the header");
    let curve: Vec<_> = weight.turns.iter().map(|turn| (turn.context_tokens, turn.compactions)).collect();
    let called = weight.turns[1].context_tokens;
    assert!(called > 4_599 + 1_120);
    // What pi adds to requests was there before; the count in the file is from before the compaction.
    assert_eq!((weight.context_tokens.tokens, weight.context_tokens.counted), (4_607, None));
    assert_eq!(curve, [(4_599, 0), (called, 0), (4_605, 1), (4_607, 0)]);
}

#[test]
fn what_stands_twice_is_counted_once_less() {
    let (a, b) = ("a".repeat(1500), "b".repeat(1500));
    let last = format!("{}{}", "a".repeat(1499), "c");
    let bytes = pi(&[user(&a), user(&b), user(&a), user(&last), user(&a), user("short"), user("short")]);
    let twice = weighed(&bytes).duplicates;
    assert_eq!(twice.again, Amount { count: 2, bytes: 3000, tokens: 0 });
    assert!(!twice.at_least);
}

#[test]
fn images_are_told_by_what_they_say_they_are() {
    let data = "A".repeat(300);
    let image = format!(r#"{{"type":"image","mimeType":"image/png","data":"{data}"}}"#);
    let said = format!(r#""type":"message","message":{{"role":"user","content":[{image}]}}"#);
    let text = format!(r#""type":"message","message":{{"role":"user","content":[{{"data":"{data}"}}]}}"#);
    let weight = weighed(&pi(&[said, text, result("x", "see", &image)]));
    assert_eq!(part(&weight, Category::Images), Amount { count: 1, bytes: 302, tokens: super::IMAGE_TOKENS });
    assert_eq!(weight.images.count, 2, "one of them in a side copy");
}

#[test]
fn keys_that_are_data_are_not_told() {
    let long = "z".repeat(200);
    let keys = ["/srv/secret.txt", "0f3a9b12c4", "two words", "\\u0041bc"];
    let pairs: Vec<String> = keys.iter().map(|key| format!(r#""{key}":"{long}""#)).collect();
    let many: Vec<String> =
        (0..200).map(|n| format!(r#""k{}{}":"{long}""#, (b'a' + n / 8) as char, n % 8)).collect();
    let details = format!(r#"{{{},"many":{{{}}}}}"#, pairs.join(","), many.join(","));
    let weight = weighed(&pi(&[result("x", "see", &details)]));
    let told: Vec<_> = weight.fields.iter().map(|row| row.name.as_str()).collect();
    assert!(told.contains(&"message.details.*") && told.contains(&"message.details.Abc"), "{told:?}");
    assert!(!told.iter().any(|name| name.contains("secret") || name.contains("0f3a") || name.contains(' ')));
    assert!(told.len() < 90, "{}", told.len());
}

#[test]
fn a_tokeniser_is_asked_for_the_model_and_its_count_believed() {
    let bytes = pi(&[user("go"), call("c", "ls"), result("c", "a\\nb", "{}")]);
    let weight = weigh(&&bytes[..], 0, &mut |model| {
        assert_eq!(model, b"gpt-5");
        Some(|text| text.len() as u64 * 1000)
    })
    .unwrap();
    assert!(weight.tokens_are_exact);
    assert_eq!(part(&weight, Category::Results).tokens, 3000, "of the text, not of how it is written");
}

#[test]
fn what_is_no_transcript_is_all_one_thing() {
    let weight = weighed(b"{\"a\":1}\nnothing\n");
    assert!(weight.facts.format.is_none() && weight.fields.is_empty() && weight.turns.is_empty());
    assert_eq!(part(&weight, Category::Bookkeeping).bytes, 16);
}
