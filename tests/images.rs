//! `--images downscale`: what is made smaller, what is not, and that undo restores everything.

use crate::support::Dir;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};
use std::fs;
use std::io::Cursor;

/// An image that compresses badly, as base64.
fn picture(width: u32, height: u32, seed: u32, format: ImageFormat) -> String {
    let noise = |x: u32, y: u32| {
        (x * 7919 + y * 104_729 + seed).wrapping_mul(2_654_435_761).rotate_left(11).to_le_bytes()
    };
    let image =
        RgbImage::from_fn(width, height, |x, y| Rgb([noise(x, y)[0], noise(x, y)[1], noise(x, y)[2]]));
    let mut file = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(image).write_to(&mut file, format).unwrap();
    STANDARD.encode(file.into_inner())
}

fn size(base64: &str) -> (u32, u32) {
    image::load_from_memory(&STANDARD.decode(base64).unwrap()).unwrap().to_rgb8().dimensions()
}

fn kind(base64: &str) -> ImageFormat {
    image::guess_format(&STANDARD.decode(base64).unwrap()).unwrap()
}

/// A pi session with an image in each user message.
fn session(images: &[(&str, &str)]) -> String {
    let mut lines = vec![json!({"type":"session","version":3,"id":"s","cwd":"/w"})];
    let mut parent = Value::Null;
    for (n, (media, data)) in images.iter().enumerate() {
        for (role, content) in [
            ("user", json!([{"type":"image","data":data,"mimeType":media}, {"type":"text","text":"look"}])),
            ("assistant", json!([{"type":"text","text":format!("{n}")}])),
        ] {
            let id = format!("{role}{n}");
            lines.push(json!({"type":"message","id":id,"parentId":parent,
                "message":{"role":role,"content":content,"stopReason":"stop"}}));
            parent = id.into();
        }
    }
    lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n"
}

const DOWNSCALE: [&str; 8] =
    ["fix", "--settle", "0", "--allow", "S4", "--images", "downscale", "--image-max-pixels"];

/// Fixes `s.jsonl`, and checks that a second run changes nothing and that undo restores the text. Returns the fixed
/// text.
fn fixed(dir: &Dir, text: &str, arguments: &[&str]) -> String {
    let path = dir.write("s.jsonl", text);
    let arguments = [arguments, &["s.jsonl"]].concat();
    dir.tailor(&arguments);
    let after = fs::read_to_string(&path).unwrap();
    let again = dir.tailor(&[&arguments[..], &["--format", "json"]].concat()).file();
    assert_eq!(again["outcome"], "clean", "{again}");
    assert_eq!(fs::read_to_string(&path).unwrap(), after);
    if after != text {
        assert_eq!(dir.tailor(&["undo", "s.jsonl"]).status, 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    after
}

/// The base64 of the images in a pi session, or the texts in their place.
fn images(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let blocks = lines.filter_map(|line| Some(line["message"]["content"].as_array()?.first()?.clone()));
    let data = |block: Value| block["data"].as_str().or(block["text"].as_str()).unwrap().to_string();
    blocks.map(data).collect::<Vec<_>>().into_iter().step_by(2).collect()
}

#[test]
fn each_kind_is_made_small_in_its_place() {
    let dir = Dir::new();
    let kinds = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP];
    let data: Vec<(ImageFormat, String)> =
        kinds.into_iter().map(|format| (format, picture(120, 60, 1, format))).collect();
    let all: Vec<(&str, &str)> =
        data.iter().map(|(format, data)| (format.to_mime_type(), data.as_str())).collect();
    let text = session(&all);
    let after = fixed(&dir, &text, &[&DOWNSCALE[..], &["80"]].concat());
    let mut expected = text.clone();
    for ((format, old), new) in data.iter().zip(images(&after)) {
        assert_eq!((kind(&new), size(&new)), (*format, (80, 40)));
        expected = expected.replace(old, &new);
    }
    // Nothing else has changed, and the result is the same on every machine.
    assert_eq!(after, expected);
    assert_eq!(fixed(&Dir::new(), &text, &[&DOWNSCALE[..], &["80"]].concat()), after);
}

#[test]
fn it_is_asked_for_and_allowed() {
    let dir = Dir::new();
    let data = picture(120, 60, 1, ImageFormat::Png);
    let text = session(&[("image/png", &data)]);
    let limit = ["fix", "--settle", "0", "--image-max-pixels", "80"];
    let path = dir.write("s.jsonl", &text);
    let run = dir.tailor(&[&limit[..], &["--images", "downscale", "s.jsonl"]].concat());
    assert!(run.text().contains("it makes images smaller than the model has seen them"), "{}", run.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let stubbed = fixed(&dir, &text, &[&limit[..], &["--allow", "S4"]].concat());
    assert!(images(&stubbed)[0].contains("PNG image, 120x60 pixels"), "{stubbed}");
    // Set in a configuration file. A profile does not change it.
    for profile in ["", "profile = \"agent-max\"\n"] {
        let settings = format!("{profile}images = \"downscale\"\nallow = [\"S4\"]\nimage_pixels_max = 80\n");
        dir.write("tailor.toml", settings);
        let after = fixed(&dir, &text, &["fix", "--settle", "0", "--config", "tailor.toml"]);
        assert_eq!(size(&images(&after)[0]), (80, 40));
    }
}

#[test]
fn what_is_too_long_gets_smaller_until_it_is_not() {
    let dir = Dir::new();
    let data = picture(120, 60, 1, ImageFormat::Png);
    let arguments = [&DOWNSCALE[..7], &["--image-max-size", "2000"]].concat();
    let small = images(&fixed(&dir, &session(&[("image/png", &data)]), &arguments)).remove(0);
    assert!(small.len() <= 2000 && size(&small).0 < 120, "{} {:?}", small.len(), size(&small));
    // OpenAI's image URL, of which only the length is limited.
    let line = json!({"role":"user","content":[{"type":"text","text":"look"},
        {"type":"image_url","image_url":{"url":format!("data:image/png;base64,{data}")}}]});
    let text = format!("{line}\n{}\n", json!({"role":"assistant","content":"I do"}));
    assert_eq!(fixed(&dir, &text, &arguments), text.replace(&data, &small));
}

#[test]
fn copies_and_labels_follow() {
    let dir = Dir::new();
    let data = picture(120, 60, 1, ImageFormat::Jpeg);
    let row = |number: u32, parent: Value, kind: &str, message: Value, copy: Value| {
        let id = format!("00000000-0000-4000-a000-{number:012}");
        let row = json!({"parentUuid":parent,"isSidechain":false,"sessionId":"S","type":kind,"message":message,
            "toolUseResult":copy,"uuid":id});
        (format!("{row}\n"), Value::from(id))
    };
    let call =
        json!({"role":"assistant","content":[{"type":"tool_use","id":"toolu_R","name":"Read","input":{}}]});
    let image = json!({"type":"image","source":{"type":"base64","data":data,"media_type":"image/png"}});
    let result =
        json!({"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_R","content":[image]}]});
    let (first, id) = row(1, Value::Null, "assistant", call, Value::Null);
    let (second, id) = row(2, id, "user", result, json!({"type":"image","file":{"base64":data}}));
    let (third, _) = row(3, id, "assistant", json!({"role":"assistant","content":"ok"}), Value::Null);
    let text = [first, second, third].concat();
    let after = fixed(&dir, &text, &[&DOWNSCALE[..], &["80", "--ignore", "M8"]].concat());
    let row: Value = serde_json::from_str(after.lines().nth(1).unwrap()).unwrap();
    let small = row["toolUseResult"]["file"]["base64"].as_str().unwrap();
    assert_eq!((size(small), kind(small)), ((80, 40), ImageFormat::Jpeg));
    assert_eq!(after, text.replace(&data, small).replace("image/png", "image/jpeg"));
}

#[test]
fn what_cannot_be_made_small_gives_way_to_a_line_of_text() {
    let dir = Dir::new();
    let whole = STANDARD.decode(picture(120, 60, 1, ImageFormat::Png)).unwrap();
    let torn = STANDARD.encode(&whole[..whole.len() / 2]);
    let mut bomb = whole.clone();
    bomb[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
    let bomb = STANDARD.encode(bomb);
    let odd = format!("{}!{}", &torn[..400], &torn[400..]);
    let (first, other) = (picture(120, 60, 2, ImageFormat::Png), picture(60, 120, 3, ImageFormat::Png));
    // The last but one is the first again.
    let all = [&torn, &bomb, &odd, &first, &first, &other].map(|data| ("image/png", data.as_str()));
    let after = images(&fixed(&dir, &session(&all), &[&DOWNSCALE[..], &["80"]].concat()));
    for n in [0, 1, 2, 4] {
        assert!(after[n].starts_with("[tailor: ") && after[n].contains("PNG image"), "{n}: {}", after[n]);
    }
    assert_eq!((size(&after[3]), size(&after[5])), ((80, 40), (40, 80)));
}

/// Only Tailor itself starts the process that decodes, which prints nothing else.
#[test]
fn the_process_that_decodes_takes_anything() {
    let dir = Dir::new();
    let file = STANDARD.decode(picture(20, 10, 1, ImageFormat::Png)).unwrap();
    let run = |input: &[u8], arguments: &[&str]| dir.pipe(input, &[&["downscale-image"], arguments].concat());
    let small = run(&file, &["image/png", "10", "100000"]);
    assert_eq!((small.status, size(&STANDARD.encode(&small.stdout))), (0, (10, 5)));
    for arguments in [&["image/png", "10"][..], &["image/tiff", "10", "9999"], &["image/png", "x", "9"], &[]]
    {
        let run = run(&file, arguments);
        assert_eq!((run.status, run.stdout.len(), run.stderr.as_str()), (1, 0, ""));
    }
    for end in 0..=64 {
        assert_eq!(run(&file[..end], &["image/gif", "10", "9999"]).status, 1);
    }
}
