//! Remembers values for single files within a bound. The one that was used longest ago is forgotten first.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// Values for files, with the memory that they take.
pub(crate) struct Memory<T> {
    files: HashMap<Arc<Path>, MemoryEntry<T>>,
    /// By when a value was stored.
    order: BTreeMap<u64, Arc<Path>>,
    put: u64,
    weight: usize,
    limit: usize,
}

struct MemoryEntry<T> {
    what: T,
    weight: usize,
    order: u64,
}

impl<T> Memory<T> {
    /// Holds at most so many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { files: HashMap::new(), order: BTreeMap::new(), put: 0, weight: 0, limit }
    }

    /// Removes and returns the value for a file.
    pub(crate) fn take(&mut self, path: &Path) -> Option<T> {
        let kept = self.files.remove(path)?;
        self.order.remove(&kept.order);
        self.weight -= kept.weight;
        Some(kept.what)
    }

    /// Stores a value of this size for a file, and forgets others if necessary.
    pub(crate) fn put(&mut self, path: &Arc<Path>, what: T, weight: usize) {
        drop(self.take(path));
        self.put += 1;
        self.weight += weight;
        self.order.insert(self.put, path.clone());
        self.files.insert(path.clone(), MemoryEntry { what, weight, order: self.put });
        while self.weight > self.limit {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.weight -= self.files.remove(&oldest).map_or(0, |kept| kept.weight);
        }
    }

    pub(crate) fn files(&self) -> usize {
        self.files.len()
    }

    /// In bytes.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_longest_goes_first() {
        let path = |n: usize| Arc::from(Path::new(&n.to_string()));
        let mut memory = Memory::new(100);
        for n in 0..10 {
            memory.put(&path(n), n, 10);
        }
        assert_eq!((memory.files(), memory.weight()), (10, 100));
        assert_eq!(memory.take(&path(0)), Some(0));
        memory.put(&path(0), 0, 20);
        assert_eq!((memory.take(&path(1)), memory.take(&path(2))), (None, Some(2)));
        memory.put(&path(0), 7, 30);
        assert_eq!((memory.files(), memory.weight()), (8, 100));
        memory.put(&path(11), 11, 1_000);
        assert_eq!((memory.files(), memory.weight(), memory.order.len()), (0, 0, 0));
    }
}
