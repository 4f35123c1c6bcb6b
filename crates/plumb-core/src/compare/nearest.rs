//! The known name that a typo most likely meant.

/// The candidate with the smallest edit distance, if it is close enough to be meant.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let wanted = name.to_ascii_lowercase();
    candidates
        .filter_map(|candidate| {
            let known = candidate.to_ascii_lowercase();
            // `strategy` for `updateStrategy`: part of the name was left out.
            let is_part = wanted.len() >= 4
                && (known.contains(&wanted) || (known.len() >= 4 && wanted.contains(&known)));
            let distance = distance(&wanted, &known);
            let close = distance <= wanted.len().div_ceil(3);
            (close || is_part)
                .then_some((if close { distance } else { distance.max(wanted.len()) }, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// Edits (insert, delete, replace) between two words.
fn distance(one: &str, other: &str) -> usize {
    if one.len().max(other.len()) > 100 {
        return usize::MAX;
    }
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut previous = i;
        let mut left = i + 1;
        for (j, b) in other.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(usize::MAX);
            let replaced = previous + usize::from(a != *b);
            let best = replaced.min(above + 1).min(left + 1);
            if let Some(cell) = row.get_mut(j) {
                *cell = left;
            }
            previous = above;
            left = best;
        }
        if let Some(cell) = row.last_mut() {
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_find_their_word() {
        let container = ["image", "imagePullPolicy", "name", "ports", "resources"];
        assert_eq!(nearest("imagePullPolice", container.into_iter()), Some("imagePullPolicy".to_owned()));
        assert_eq!(nearest("port", container.into_iter()), Some("ports".to_owned()));
        let statefulset = ["serviceName", "selector", "template", "updateStrategy", "replicas"];
        assert_eq!(nearest("strategy", statefulset.into_iter()), Some("updateStrategy".to_owned()));
        assert_eq!(nearest("levle", ["level", "size"].into_iter()), Some("level".to_owned()));
        assert_eq!(nearest("brightnes", ["brightness"].into_iter()), Some("brightness".to_owned()));
        assert_eq!(nearest("unrelated", container.into_iter()), None);
    }

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
