//! Compiled by `.ci/run` again and again beside what it measures: how much CPU this takes says how fast the machine is now.

use std::collections::BTreeMap;

fn main() {
    let mut words: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (at, word) in std::env::args().enumerate() {
        let number = word.parse().unwrap_or(at as f64);
        words.entry(word.to_lowercase()).or_default().push(number);
    }
    let mut sums: Vec<(String, f64)> =
        words.into_iter().map(|(word, numbers)| (word, numbers.iter().sum())).collect();
    sums.sort_by(|one, other| other.1.total_cmp(&one.1));
    println!("{sums:?}");
}
