//! What files of each shape are: which entries are live, in which order, what of them is in context, and how the agent
//! treats such a file.

mod graph;
mod list;
mod log;
mod parents;
mod tree;
mod upserts;

use super::traits::Traits;
use crate::format::Shape;

/// What holds for all files of a shape.
pub(crate) fn traits(shape: Shape) -> &'static Traits {
    match shape {
        Shape::Tree => &tree::TREE,
        Shape::Graph => &graph::GRAPH,
        Shape::List => &list::LIST,
        Shape::Upserts => &upserts::UPSERTS,
        Shape::Log => &log::LOG,
    }
}
