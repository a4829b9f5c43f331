//! Names of fields, and which one a name was before one byte of it was written over.
//!
//! A format lists the names that its records have, and which of them they cannot do without. A key is a damaged one where
//! a needed name is absent, the key is no name of the format, its value has the form that the name asks for, and it
//! differs from that name, and from no other that is absent, in one place. Short keys are alike too easily: of those only
//! a byte that no program writes into a name counts.

use alloc::vec::Vec;
use core::ops::ControlFlow;
use spans::json::{Doc, Kind, Value};
use spans::source::Span;

/// Shorter names may be another program's with one letter changed.
const LETTERS_MIN: usize = 4;

/// Of so many names in one record a byte may have been written over.
const DAMAGED_MAX: usize = 4;

/// How far behind a damaged name a tokeniser may stumble over it.
const REACH_BYTES: usize = 64;

/// What kind of value stands under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    TextOrNull,
    TextOrList,
    Number,
    Object,
    List,
    /// A list of objects, which is not empty.
    Objects,
    Any,
}

impl Form {
    fn fits(self, value: Value<'_>) -> bool {
        let kind = value.kind();
        match self {
            Self::Text => kind == Kind::String,
            Self::TextOrNull => matches!(kind, Kind::String | Kind::Null),
            Self::TextOrList => matches!(kind, Kind::String | Kind::Array | Kind::Null),
            Self::Number => kind == Kind::Number,
            Self::Object => kind == Kind::Object,
            Self::List => kind == Kind::Array,
            Self::Objects => value.items().next().is_some_and(|item| item.kind() == Kind::Object),
            Self::Any => true,
        }
    }
}

/// Names of an object, or of each object of a list.
pub struct Names {
    of: Of,
    fields: &'static [Field],
}

/// Which objects have the names.
enum Of {
    All,
    /// Those that have one of these strings under this name.
    Kind(&'static str, &'static [&'static str]),
    /// Those that have this name.
    Beside(&'static str),
    /// All; each has exactly one of the names.
    One,
}

/// A name, and what stands under it.
pub(crate) struct Field {
    name: &'static str,
    /// The record cannot do without it, and its value has this form.
    needed: Option<Form>,
    inside: &'static [Names],
}

/// A name that these objects cannot do without.
pub(super) const fn needs(name: &'static str, form: Form) -> Field {
    Field { name, needed: Some(form), inside: &[] }
}

/// A name of a text that these objects cannot do without.
pub(super) const fn text(name: &'static str) -> Field {
    needs(name, Form::Text)
}

/// A name that these objects may have.
pub(super) const fn has(name: &'static str) -> Field {
    Field { name, needed: None, inside: &[] }
}

impl Field {
    /// What stands under it has names as well.
    pub(super) const fn with(mut self, inside: &'static [Names]) -> Self {
        self.inside = inside;
        self
    }
}

impl Names {
    /// Names of all objects.
    pub(super) const fn all(fields: &'static [Field]) -> Self {
        Self { of: Of::All, fields }
    }

    /// Names of the objects that have one of these strings under a name.
    pub(super) const fn of(
        name: &'static str,
        values: &'static [&'static str],
        fields: &'static [Field],
    ) -> Self {
        Self { of: Of::Kind(name, values), fields }
    }

    /// Names of the objects that have one of these types.
    pub(super) const fn typed(types: &'static [&'static str], fields: &'static [Field]) -> Self {
        Self::of("type", types, fields)
    }

    /// Names of the objects that have another name.
    pub(super) const fn beside(name: &'static str, fields: &'static [Field]) -> Self {
        Self { of: Of::Beside(name), fields }
    }

    /// Names of which an object has one.
    pub(super) const fn one(fields: &'static [Field]) -> Self {
        Self { of: Of::One, fields }
    }

    /// Those that an object has.
    fn of_object(own: &'static [Names], object: Value<'_>) -> impl Iterator<Item = &'static Names> {
        // Nearly all ask for the same field.
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

/// A key of which a byte was written over: its literal, and the name that it was.
pub(crate) type Damaged = (Span, &'static str);

/// Gives the keys of a record their names back, and says which.
pub(crate) fn mend(all: &'static [Names], doc: &mut Doc) -> Vec<Damaged> {
    let mut mended = Vec::new();
    while mended.len() < DAMAGED_MAX
        && let Some((at, span, name)) = doc.root().and_then(|root| damaged(all, all, root))
    {
        doc.rename(at, name);
        mended.push((span, name));
    }
    mended
}

/// Whether no key of a record is damaged.
pub(crate) fn is_sound(all: &'static [Names], doc: &Doc) -> bool {
    doc.root().is_none_or(|root| damaged(all, all, root).is_none())
}

/// The first damaged key of an object and of all that it holds.
fn damaged(vocabulary: &'static [Names], own: &'static [Names], object: Value<'_>) -> Option<Found> {
    if Names::of_object(own, object).any(|names| names.missing(object).next().is_some())
        && let Some(found) = was(vocabulary, own, object)
    {
        return Some(found);
    }
    let fields = Names::of_object(own, object).flat_map(|names| names.fields);
    let fields = fields.filter(|field| !field.inside.is_empty());
    fields.filter_map(|field| Some((field, object.get(field.name)?))).find_map(|(field, value)| {
        match value.kind() {
            Kind::Object => damaged(vocabulary, field.inside, value),
            Kind::Array => value.items().find_map(|item| damaged(vocabulary, field.inside, item)),
            _ => None,
        }
    })
}

/// A damaged key: its place, its literal, and the name that it was.
type Found = (u32, Span, &'static str);

/// The only key of an object that is a name which it lacks, but for one byte, if no other name will do.
fn was(vocabulary: &'static [Names], own: &'static [Names], object: Value<'_>) -> Option<Found> {
    let mut found: Option<Found> = None;
    let missing: Vec<_> = Names::of_object(own, object).flat_map(|names| names.missing(object)).collect();
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

/// Whether a key, as it is written, is a name with one place written over.
fn is_like(key: &[u8], name: &str) -> bool {
    let Some((at, _)) = only_difference(key, name) else { return false };
    let byte = key[at];
    name.len() >= LETTERS_MIN || !byte.is_ascii() || byte.is_ascii_control()
}

/// Where a key differs from a name, if that is one place: a byte, or a character that stands for one. Two bytes that
/// make an escape are two places.
fn only_difference(key: &[u8], name: &str) -> Option<(usize, usize)> {
    let name = name.as_bytes();
    if key.len() != name.len() && key.len() != name.len() + 2 {
        return None;
    }
    let before = key.iter().zip(name).take_while(|(one, two)| one == two).count();
    let rest = &name[before..];
    let behind =
        key[before..].iter().rev().zip(rest.iter().rev()).take_while(|(one, two)| one == two).count();
    let written_over = before..key.len() - behind;
    let replaced = name.len() - before - behind;
    let one = written_over.len() == 1 || key[written_over.clone()] == *"\u{fffd}".as_bytes();
    (replaced == 1 && one).then_some((before, written_over.len()))
}

/// Whether the format has such a name anywhere.
fn is_name(vocabulary: &'static [Names], key: Value<'_>) -> bool {
    each_name(vocabulary, &mut |name| {
        if key.is(name) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .is_break()
}

fn each_name(
    all: &'static [Names],
    each: &mut dyn FnMut(&'static str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for field in all.iter().flat_map(|names| names.fields) {
        each(field.name)?;
        each_name(field.inside, each)?;
    }
    ControlFlow::Continue(())
}

/// The byte of a name that was written over by one on which reading the record stumbled: where it is, and what it was.
/// Only bytes that end a name, or cannot stand in one, do that.
pub(crate) fn stumbled(all: &'static [Names], text: &[u8], at: usize) -> Option<(usize, u8)> {
    let from = at.saturating_sub(REACH_BYTES);
    let mut found = Vec::new();
    let ends_name = |byte: &u8| matches!(byte, 0 | b'"' | b'\\');
    for place in (from..=at).filter(|&place| text.get(place).is_some_and(ends_name)) {
        // Between the quote that begins a key and its damaged byte there is no other such byte.
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
    // The same key may be named at several places of a record.
    found.dedup();
    found.pop().filter(|_| found.is_empty())
}

/// Whether a text begins with a name as a key, but for the byte at this index.
fn is_key(text: &[u8], index: usize, name: &str) -> bool {
    let Some((key, behind)) = text.split_at_checked(name.len()) else { return false };
    let own = name.as_bytes();
    key[..index] == own[..index]
        && key[index + 1..] == own[index + 1..]
        && behind.first() == Some(&b'"')
        && behind[1..].trim_ascii_start().first() == Some(&b':')
}
