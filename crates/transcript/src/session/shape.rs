//! What files of each shape are: which entries are live, in which order, and what of them is in context.

mod graph;
mod list;
mod log;
mod parents;
mod tree;
mod upserts;
