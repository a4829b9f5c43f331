//! Names of fields, and how to find the original of a name with an overwritten byte.
//!
//! A format lists the names in its records, and which of them are needed. A key is a damaged name if that name is
//! needed and absent, the key is not a name of the format, its value has the form that belongs to the name, and it
//! differs in one place from this absent name and from no other. Short keys resemble each other too easily: in those,
//! only a byte counts that no program writes into a name.

use alloc::vec::Vec;
use core::ops::ControlFlow;
use spans::json::{Doc, Value, ValueKind};
use spans::source::Span;

/// A shorter key may be another program's name that differs in one letter.
const LETTERS_MIN: usize = 4;

/// Most names of a record that may be damaged.
const DAMAGED_MAX: usize = 4;

/// How far after a damaged name reading may fail because of it.
const REACH_BYTES: usize = 64;

/// What kind of value belongs to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    TextOrNull,
    TextOrList,
    Number,
    Object,
    List,
    /// A list of objects that is not empty.
    Objects,
    Any,
}

impl Form {
    fn fits(self, value: Value<'_>) -> bool {
        let kind = value.kind();
        match self {
            Self::Text => kind == ValueKind::String,
            Self::TextOrNull => matches!(kind, ValueKind::String | ValueKind::Null),
            Self::TextOrList => matches!(kind, ValueKind::String | ValueKind::Array | ValueKind::Null),
            Self::Number => kind == ValueKind::Number,
            Self::Object => kind == ValueKind::Object,
            Self::List => kind == ValueKind::Array,
            Self::Objects => value.items().next().is_some_and(|item| item.kind() == ValueKind::Object),
            Self::Any => true,
        }
    }
}

/// Names of an object, or of each object in a list.
pub struct FieldNames {
    of: Of,
    fields: &'static [Field],
}

/// Which objects have the names.
enum Of {
    All,
    /// Objects with one of these strings under this name.
    Kind(&'static str, &'static [&'static str]),
    /// Objects with this name.
    Beside(&'static str),
    /// All objects; each has exactly one of the names.
    One,
}

/// A name and the value that belongs to it.
pub(crate) struct Field {
    name: &'static str,
    /// The value's form, if the record needs this name.
    needed: Option<Form>,
    inside: &'static [FieldNames],
}

/// A needed name.
pub(super) const fn needs(name: &'static str, form: Form) -> Field {
    Field { name, needed: Some(form), inside: &[] }
}

/// A needed name whose value is a text.
pub(super) const fn text(name: &'static str) -> Field {
    needs(name, Form::Text)
}

/// An optional name.
pub(super) const fn has(name: &'static str) -> Field {
    Field { name, needed: None, inside: &[] }
}

impl Field {
    /// Adds the names of the objects in its value.
    pub(super) const fn with(mut self, inside: &'static [FieldNames]) -> Self {
        self.inside = inside;
        self
    }
}

impl FieldNames {
    /// Names of all objects.
    pub(super) const fn all(fields: &'static [Field]) -> Self {
        Self { of: Of::All, fields }
    }

    /// Names of objects that have one of these strings under a given name.
    pub(super) const fn where_value(
        name: &'static str,
        values: &'static [&'static str],
        fields: &'static [Field],
    ) -> Self {
        Self { of: Of::Kind(name, values), fields }
    }

    /// Names of objects with one of these types.
    pub(super) const fn typed(types: &'static [&'static str], fields: &'static [Field]) -> Self {
        Self::where_value("type", types, fields)
    }

    /// Names of objects that have another, given name.
    pub(super) const fn beside(name: &'static str, fields: &'static [Field]) -> Self {
        Self { of: Of::Beside(name), fields }
    }

    /// Names of which each object has exactly one.
    pub(super) const fn one(fields: &'static [Field]) -> Self {
        Self { of: Of::One, fields }
    }

    /// The names that apply to an object.
    fn of_object(own: &'static [FieldNames], object: Value<'_>) -> impl Iterator<Item = &'static FieldNames> {
        // Nearly all look at the same field.
        let mut last = ("", None);
        let mut get = move |name| {
            if last.0 != name {
                last = (name, object.get(name));
            }
            last.1
        };
        own.iter().filter(move |names| match names.of {
            Of::All | Of::One => true,
            Of::Kind(name, values) => get(name).is_some_and(|value| values.iter().any(|own| value.is(own))),
            Of::Beside(name) => get(name).is_some(),
        })
    }

    /// The names that an object lacks, and their forms.
    fn missing(&self, object: Value<'_>) -> impl Iterator<Item = (&'static str, Form)> {
        let lacks = move |name| object.get(name).is_none();
        let any = !matches!(self.of, Of::One) || self.fields.iter().all(|field| lacks(field.name));
        let fields = if any { self.fields } else { &[] };
        let needed = fields.iter().filter_map(|field| Some((field.name, field.needed?)));
        needed.filter(move |(name, _)| lacks(name))
    }
}

/// A key with an overwritten byte: its literal, and its original name.
pub(crate) type Damaged = (Span, &'static str);

/// Keys that were seen and are no damaged names of a format. Records have the same keys again and again.
#[derive(Default)]
pub(crate) struct SoundKeys {
    /// How many records there were. Of few, looking at each as a whole takes less time.
    records: usize,
    /// Each at a place that its tag decides, with its length.
    seen: Vec<(KeyBytes, u8)>,
}

/// Longest key that is remembered.
const SOUND_BYTES_MAX: usize = 32;

/// All bytes of a key of a known length: its first ones and its last ones, which may be the same.
type KeyBytes = [u64; 4];

/// `None` if it is too long.
fn key_bytes(key: &[u8]) -> Option<KeyBytes> {
    let word = |from: usize| key[from..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let half = |from: usize| key[from..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes).into());
    let byte = |at: usize| key[at].into();
    match key.len() {
        0 => Some([0; 4]),
        length @ 1..4 => Some([byte(0), byte(length / 2), byte(length - 1), 0]),
        length @ 4..8 => Some([half(0), half(length - 4), 0, 0]),
        length @ 8..=16 => Some([word(0), word(length - 8), 0, 0]),
        length @ 17..=SOUND_BYTES_MAX => Some([word(0), word(8), word(length - 16), word(length - 8)]),
        _ => None,
    }
}

/// How many keys are remembered.
const SOUND_KEYS: usize = 1 << 10;

/// After how many records keys are remembered.
const SOUND_RECORDS_MIN: usize = 100;

impl SoundKeys {
    /// Whether all keys of a record are names of the format, or resemble none that is needed. It may say `false` although
    /// they are.
    fn have_all(&mut self, all: &'static [FieldNames], doc: &Doc) -> bool {
        self.records += 1;
        if self.records < SOUND_RECORDS_MIN {
            return false;
        }
        self.seen.resize(SOUND_KEYS, (KeyBytes::default(), u8::MAX));
        doc.keys().all(|(key, text, tag)| {
            let Some(bytes) = key_bytes(text) else { return is_sound_key(all, key) };
            let (seen, length) = &mut self.seen[usize::from(tag.wrapping_mul(0x9e3b) >> 6)];
            // One comparison for all: to stop at the first difference takes longer.
            let different = bytes.iter().zip(&*seen).fold(0, |bits, (own, seen)| bits | (own ^ seen));
            if usize::from(*length) == text.len() && different == 0 {
                return true;
            }
            let sound = is_sound_key(all, key);
            if sound {
                (*seen, *length) = (bytes, text.len() as u8);
            }
            sound
        })
    }
}

/// Whether a key is a name of the format, or resembles none that is needed.
fn is_sound_key(all: &'static [FieldNames], key: Value<'_>) -> bool {
    is_name(all, key) || each_needed(all, &mut |name| !is_like(key.prefix(), name))
}

/// Whether something holds for all needed names.
fn each_needed(all: &'static [FieldNames], holds: &mut dyn FnMut(&'static str) -> bool) -> bool {
    all.iter()
        .flat_map(|names| names.fields)
        .all(|field| (field.needed.is_none() || holds(field.name)) && each_needed(field.inside, holds))
}

/// Restores damaged keys of a record, and returns them.
pub(crate) fn mend(all: &'static [FieldNames], doc: &mut Doc, sound: &mut SoundKeys) -> Vec<Damaged> {
    let mut mended = Vec::new();
    if sound.have_all(all, doc) {
        return mended;
    }
    while mended.len() < DAMAGED_MAX
        && let Some((at, span, name)) = doc.root().and_then(|root| damaged(all, all, root))
    {
        doc.rename(at, name);
        mended.push((span, name));
    }
    mended
}

/// Whether no key of a record is damaged.
pub(crate) fn is_sound(all: &'static [FieldNames], doc: &Doc) -> bool {
    doc.root().is_none_or(|root| damaged(all, all, root).is_none())
}

/// The first damaged key in an object and everything inside it.
fn damaged(
    vocabulary: &'static [FieldNames],
    own: &'static [FieldNames],
    object: Value<'_>,
) -> Option<DamagedKey> {
    let mut deeper = None;
    for names in FieldNames::of_object(own, object) {
        if names.missing(object).next().is_some()
            && let Some(found) = was(vocabulary, own, object)
        {
            return Some(found);
        }
        if deeper.is_none() {
            deeper = names.fields.iter().find_map(|field| damaged_inside(vocabulary, field, object));
        }
    }
    deeper
}

/// A damaged key in the value of a field.
fn damaged_inside(
    vocabulary: &'static [FieldNames],
    field: &'static Field,
    object: Value<'_>,
) -> Option<DamagedKey> {
    if field.inside.is_empty() {
        return None;
    }
    let value = object.get(field.name)?;
    match value.kind() {
        ValueKind::Object => damaged(vocabulary, field.inside, value),
        ValueKind::Array => value.items().find_map(|item| damaged(vocabulary, field.inside, item)),
        _ => None,
    }
}

/// A damaged key: its place, its literal, and the name that it was.
type DamagedKey = (u32, Span, &'static str);

/// The one key of an object that is an absent name with an overwritten byte, if no other name fits.
fn was(
    vocabulary: &'static [FieldNames],
    own: &'static [FieldNames],
    object: Value<'_>,
) -> Option<DamagedKey> {
    let mut found: Option<DamagedKey> = None;
    let missing: Vec<_> =
        FieldNames::of_object(own, object).flat_map(|names| names.missing(object)).collect();
    for (key, value) in object.fields() {
        for &(name, form) in &missing {
            let this = (key.place(), key.span(), name);
            let fits = is_like(key.prefix(), name) && form.fits(value) && !is_name(vocabulary, key);
            if fits && found.replace(this).is_some_and(|known| known != this) {
                return None;
            }
        }
    }
    found
}

/// Whether a key, as it is in the file, is a name with one overwritten place.
fn is_like(key: &[u8], name: &str) -> bool {
    let Some((at, _)) = only_difference(key, name) else { return false };
    let byte = key[at];
    name.len() >= LETTERS_MIN || !byte.is_ascii() || byte.is_ascii_control()
}

/// Where a key differs from a name, if that is one place: a byte, or a character in place of a byte. Two bytes that
/// form an escape count as two places.
fn only_difference(key: &[u8], name: &str) -> Option<(usize, usize)> {
    let name = name.as_bytes();
    if key.len() != name.len() && key.len() != name.len() + 2 {
        return None;
    }
    let before = key.iter().zip(name).take_while(|(one, two)| one == two).count();
    let rest = &name[before..];
    let after = key[before..].iter().rev().zip(rest.iter().rev()).take_while(|(one, two)| one == two).count();
    let written_over = before..key.len() - after;
    let replaced = name.len() - before - after;
    let one = written_over.len() == 1 || key[written_over.clone()] == *"\u{fffd}".as_bytes();
    (replaced == 1 && one).then_some((before, written_over.len()))
}

/// Whether the format has such a name anywhere.
fn is_name(vocabulary: &'static [FieldNames], key: Value<'_>) -> bool {
    each_name(vocabulary, &mut |name| {
        if key.is(name) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .is_break()
}

fn each_name(
    all: &'static [FieldNames],
    each: &mut dyn FnMut(&'static str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for field in all.iter().flat_map(|names| names.fields) {
        each(field.name)?;
        each_name(field.inside, each)?;
    }
    ControlFlow::Continue(())
}

/// The byte of a name that was overwritten with one that made reading fail: its offset and its original. Only bytes
/// that end a name, or may not be in one, make reading fail.
pub(crate) fn stumbled(all: &'static [FieldNames], text: &[u8], at: usize) -> Option<(usize, u8)> {
    let from = at.saturating_sub(REACH_BYTES);
    let mut found = Vec::new();
    let ends_name = |byte: &u8| matches!(byte, 0 | b'"' | b'\\');
    for place in (from..=at).filter(|&place| text.get(place).is_some_and(ends_name)) {
        // No other such byte can be between the opening quote of a key and its damaged byte.
        let before = &text[place.saturating_sub(REACH_BYTES)..place];
        let Some(quote) = before.iter().rposition(ends_name).filter(|&at| before[at] == b'"') else {
            continue;
        };
        let index = before.len() - quote - 1;
        let _ = each_name(all, &mut |name| {
            let was = name.as_bytes().get(index).filter(|_| is_key(&text[place - index..], index, name));
            found.extend(was.map(|was| (place, *was)));
            ControlFlow::Continue(())
        });
    }
    // The same key may occur at several places in a record.
    found.dedup();
    found.pop().filter(|_| found.is_empty())
}

/// Whether a text begins with a name as a key, but for the byte at this index.
fn is_key(text: &[u8], index: usize, name: &str) -> bool {
    let Some((key, after)) = text.split_at_checked(name.len()) else { return false };
    let own = name.as_bytes();
    key[..index] == own[..index]
        && key[index + 1..] == own[index + 1..]
        && after.first() == Some(&b'"')
        && after[1..].trim_ascii_start().first() == Some(&b':')
}
