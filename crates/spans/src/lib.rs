//! JSON lines as bytes: where each value stands, and how a string is cut without touching anything else.
//!
//! Bytes become marks ([`block`]), marks become tokens and values ([`json`]), and a value is a [`Span`] of the source. What
//! a string says and where it may be cut is told by [`literal`] and [`cut`]; what a cut leaves in place of the text is a
//! [`marker`]. Nothing here knows what an agent writes, and nothing here reads a file, a clock or the environment.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod block;
pub mod cut;
pub mod fingerprint;
pub mod json;
pub mod literal;
pub mod marker;
pub mod source;

pub use source::{Fault, Source, Span};
