//! A tree of names, for finding those that a text begins with.

/// Where a node ends no name.
const NONE: u32 = u32::MAX;

/// Names by their bytes.
#[derive(Debug, Default)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    /// The bytes that lead on from each node, in increasing order within a node, and where to.
    edges: Vec<(u8, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Its part of `edges`.
    from: u32,
    to: u32,
    /// The name that ends here, or `NONE`.
    name: u32,
}

impl Trie {
    /// A tree of these names, none empty and no two equal, in increasing order; each is known by its place among them.
    pub(super) fn new(names: &[&[u8]]) -> Trie {
        let mut trie = Trie::default();
        // Nodes still without edges, as (names from, to, depth), in the order of their numbers.
        let mut groups = vec![(0, names.len(), 0)];
        let mut done = 0;
        while let Some(&(mut first, last, depth)) = groups.get(done) {
            done += 1;
            let ends = first < last && names[first].len() == depth;
            let name = if ends { first as u32 } else { NONE };
            first += usize::from(ends);
            let from = trie.edges.len() as u32;
            while first < last {
                let byte = names[first][depth];
                let same = names[first..last].partition_point(|name| name[depth] == byte);
                trie.edges.push((byte, groups.len() as u32));
                groups.push((first, first + same, depth + 1));
                first += same;
            }
            trie.nodes.push(Node { from, to: trie.edges.len() as u32, name });
        }
        trie
    }

    /// Hands on the names with which `text` begins, shortest first.
    pub(super) fn beginning(&self, text: &[u8], mut each: impl FnMut(usize)) {
        let Some(mut node) = self.nodes.first() else { return };
        for byte in text {
            let edges = &self.edges[node.from as usize..node.to as usize];
            let Ok(edge) = edges.binary_search_by_key(byte, |edge| edge.0) else { return };
            node = &self.nodes[edges[edge].1 as usize];
            if node.name != NONE {
                each(node.name as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_shortest_first() {
        let trie = Trie::new(&[&b"a"[..], b"ab", b"abcd", b"b", "é".as_bytes()]);
        let found = |text: &str| {
            let mut found = Vec::new();
            trie.beginning(text.as_bytes(), |name| found.push(name));
            found
        };
        assert_eq!(found("abcde"), [0, 1, 2]);
        assert_eq!(found("abcx"), [0, 1]);
        assert_eq!((found("éa"), found("bb"), found("xa"), found("")), (vec![4], vec![3], vec![], vec![]));
        Trie::new(&[]).beginning(b"a", |_| panic!("a name of none"));
    }
}
