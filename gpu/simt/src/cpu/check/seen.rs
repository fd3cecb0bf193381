//! Findings of several launches, each of them once, with the orders in which it was made.

use super::finding::Finding;
use crate::cpu::order::Order;

/// A finding, and the orders in which it occurred.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seen {
    /// The first occurrence, with the count and examples of its launch.
    pub finding: Finding,
    /// The orders.
    pub orders: Vec<Order>,
}

impl Seen {
    /// In how many of `all` orders it was made, and in which if not in each.
    pub fn in_orders(&self, all: usize) -> String {
        match self.orders.len() {
            count if count == all => format!("in each of {all} orders"),
            count => format!("in {count} of {all} orders: {}", order_names(&self.orders)),
        }
    }
}

/// Merges the findings of several launches that have the same kernel, kind, memory and source
/// lines.
pub fn merge<'a>(findings: impl IntoIterator<Item = (Order, &'a Finding)>) -> Vec<Seen> {
    let mut all = Vec::<Seen>::new();
    for (order, finding) in findings {
        match all.iter_mut().find(|seen| seen.finding.is_like(finding)) {
            Some(seen) if seen.orders.contains(&order) => {}
            Some(seen) => seen.orders.push(order),
            None => all.push(Seen { finding: finding.clone(), orders: vec![order] }),
        }
    }
    // A launch reports buffers in the order of their addresses, which differ from run to run. This
    // order does not.
    all.sort_by_cached_key(
        |Seen { finding: Finding { kind, memory, place, other_place, .. }, .. }| {
            (*kind, memory.clone(), place.clone(), other_place.clone())
        },
    );
    // A later case may have added an earlier order.
    for seen in &mut all {
        seen.orders.sort_by_key(|order| match order {
            Order::Forward => (0, 0),
            Order::Reverse => (1, 0),
            Order::Random(seed) => (2, *seed),
        });
    }
    all
}

/// The names of the orders. Of many, the first and the last.
pub fn order_names(orders: &[Order]) -> String {
    let list =
        |orders: &[Order]| orders.iter().map(Order::to_string).collect::<Vec<_>>().join(", ");
    match orders {
        [first @ .., last] if first.len() > 4 => format!("{} ... {last}", list(&first[..4])),
        _ => list(orders),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_orders_the_first_and_the_last_are_named() {
        let orders = [Order::Forward, Order::Reverse].into_iter();
        let orders = orders.chain((3..8).map(Order::Random)).collect::<Vec<_>>();
        assert_eq!(order_names(&orders[..1]), "forward");
        assert_eq!(order_names(&orders[..5]), "forward, reverse, random:3, random:4, random:5");
        assert_eq!(order_names(&orders), "forward, reverse, random:3, random:4 ... random:7");
    }
}
