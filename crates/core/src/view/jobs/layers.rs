//! The order of a graph: what comes before what. Places and lists only, and linear in both.

/// A graph in layers: whatever comes before something stands in a layer above it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layers {
    /// All places, those before others first, and otherwise as they were.
    pub(super) order: Vec<usize>,
    /// The layer of each place, from zero: as deep as the longest way to it.
    pub(super) of: Vec<usize>,
}

impl Layers {
    /// Finds the layers of places, each with those that come before it. Where some wait for each other in a circle, it
    /// is cut before the first of them.
    pub(super) fn of(before: &[Vec<usize>]) -> Self {
        let mut followers: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
        let mut waits = vec![0_usize; before.len()];
        for (place, before) in before.iter().enumerate() {
            for other in before.iter().filter(|other| **other != place) {
                followers[*other].push(place);
                waits[place] += 1;
            }
        }
        let mut of = vec![0; before.len()];
        let mut is_done = vec![false; before.len()];
        let mut order = Vec::with_capacity(before.len());
        let mut ready: Vec<usize> = (0..before.len()).filter(|place| waits[*place] == 0).collect();
        let mut looked = 0;
        let mut first_left = 0;
        while order.len() < before.len() {
            let Some(place) = ready.get(looked).copied() else {
                while is_done[first_left] {
                    first_left += 1;
                }
                ready.push(first_left);
                continue;
            };
            looked += 1;
            if std::mem::replace(&mut is_done[place], true) {
                continue;
            }
            order.push(place);
            for next in followers[place].iter().copied().filter(|next| !is_done[*next]) {
                of[next] = of[next].max(of[place] + 1);
                waits[next] -= 1;
                if waits[next] == 0 {
                    ready.push(next);
                }
            }
        }
        order.sort_by_key(|place| (of[*place], *place));
        Self { order, of }
    }

    /// Returns how many layers there are.
    pub(super) fn count(&self) -> usize {
        self.of.iter().max().map_or(0, |deepest| deepest + 1)
    }

    /// Returns the heaviest way along what comes before what, and its weight. Of ways that are equal, the one through
    /// the first places counts; what weighs nothing at its ends is left out.
    pub(super) fn heaviest(&self, before: &[Vec<usize>], weights: &[u64]) -> (Vec<usize>, u64) {
        let mut sums = vec![0_u64; before.len()];
        let mut from: Vec<Option<usize>> = vec![None; before.len()];
        for place in self.order.iter().copied() {
            let above = before[place].iter().copied().filter(|other| self.of[*other] < self.of[place]);
            let best = above.max_by_key(|other| (sums[*other], std::cmp::Reverse(*other)));
            from[place] = best.filter(|best| sums[*best] > 0);
            sums[place] = weights[place].saturating_add(from[place].map_or(0, |best| sums[best]));
        }
        let last = (0..before.len()).max_by_key(|place| (sums[*place], std::cmp::Reverse(*place)));
        let Some(last) = last.filter(|last| sums[*last] > 0) else { return (Vec::new(), 0) };
        let mut way: Vec<usize> = std::iter::successors(Some(last), |place| from[*place]).collect();
        let idle = way.iter().take_while(|place| weights[**place] == 0).count();
        way.drain(..idle);
        way.reverse();
        (way, sums[last])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_stands_below_the_longest_way_to_it() {
        let layers = Layers::of(&[vec![2], vec![0, 2], vec![], vec![2]]);
        assert_eq!(layers, Layers { order: vec![2, 0, 3, 1], of: vec![1, 2, 0, 1] });
        assert_eq!(layers.count(), 3);
        assert_eq!(Layers::of(&[]).count(), 0);
    }

    #[test]
    fn a_circle_is_cut_and_everything_has_a_layer() {
        let layers = Layers::of(&[vec![], vec![0, 3], vec![1], vec![2, 3]]);
        assert_eq!(layers.order.len(), 4);
        assert_eq!(layers.of, [0, 1, 2, 3]);
    }

    #[test]
    fn the_heaviest_way_leaves_out_what_weighs_nothing_at_its_ends() {
        let before = [vec![], vec![0], vec![1], vec![2]];
        let layers = Layers::of(&before);
        assert_eq!(layers.heaviest(&before, &[0, 5, 0, 0]), (vec![1], 5));
        assert_eq!(layers.heaviest(&before, &[1, 0, 2, 0]), (vec![0, 1, 2], 3));
        assert_eq!(layers.heaviest(&before, &[0; 4]), (vec![], 0));
    }
}
