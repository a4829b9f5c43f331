//! Reads a file line by line as a library would, and prints how many lines it could read.
//!
//!     readers {memchr|sonic-rs|simd-json} FILE
//!
//! `memchr` only finds the line breaks, `sonic-rs` checks each line without keeping anything (its lazy value), and
//! `simd-json` makes a tape of each.

use std::fs::File;
use std::io::Read;

/// How much is read at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// The inner buffers of simd-json, used again for each line.
#[derive(Default)]
struct Reader {
    buffers: simd_json::Buffers,
}

impl Reader {
    fn reads(&mut self, how: &str, line: &mut [u8]) -> bool {
        match how {
            "memchr" => true,
            "sonic-rs" => sonic_rs::from_slice::<sonic_rs::LazyValue<'_>>(line).is_ok(),
            "simd-json" => simd_json::to_tape_with_buffers(line, &mut self.buffers).is_ok(),
            other => panic!("{other}: not one of memchr, sonic-rs, simd-json"),
        }
    }
}

fn main() {
    let [_, how, path] = &std::env::args().collect::<Vec<_>>()[..] else {
        panic!("usage: readers {{memchr|sonic-rs|simd-json}} FILE");
    };
    let mut file = File::open(path).expect("the file can be opened");
    let (mut held, mut reader, mut lines, mut bad) = (Vec::new(), Reader::default(), 0_u64, 0_u64);
    let mut end = 0;
    loop {
        held.resize(end + WINDOW_BYTES, 0);
        let got = file.read(&mut held[end..]).expect("the file can be read");
        let (mut start, searched) = (0, end);
        end += got;
        let breaks: Vec<usize> =
            memchr::memchr_iter(b'\n', &held[searched..end]).map(|at| searched + at).collect();
        for at in breaks {
            lines += 1;
            bad += u64::from(!reader.reads(how, &mut held[start..at]));
            start = at + 1;
        }
        held.copy_within(start..end, 0);
        end -= start;
        if got == 0 {
            break;
        }
    }
    println!("{lines} lines, {bad} unreadable");
}
