//! Numbers with labels, and the form in which they are handed to whoever prints them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
/// What a number means to Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It is as it is now.
    Gauge,
    /// How often which sizes were seen.
    Histogram,
}

/// All numbers of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// What it tells, in a sentence.
    pub help: &'static str,
    /// What kind of number it is.
    pub kind: MetricKind,
    /// One for each set of labels.
    pub samples: Vec<Sample>,
}

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// `_bucket`, `_sum` or `_count` of a histogram; else empty.
    pub suffix: &'static str,
    /// Names and values.
    pub labels: Vec<(String, String)>,
    /// The number.
    pub value: f64,
}

impl Family {
    /// A family of gauges.
    pub(crate) fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: MetricKind::Gauge, samples: Vec::new() }
    }

    /// A family of counters that are kept elsewhere.
    pub(crate) fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: MetricKind::Counter, samples: Vec::new() }
    }

    /// Adds one number.
    pub(crate) fn push(&mut self, labels: &[(&str, &str)], value: f64) {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.samples.push(Sample { suffix: "", labels, value });
    }

    /// With one more number.
    pub(crate) fn with(mut self, labels: &[(&str, &str)], value: f64) -> Self {
        self.push(labels, value);
        self
    }
}

/// Name, meaning and labels of a metric.
#[derive(Debug)]
pub(super) struct Definition<const N: usize> {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) labels: [&'static str; N],
}

/// Values by their labels. A thousand apps make tens of thousands of them, and the same few words over and over: each
/// word is kept once.
#[derive(Debug)]
struct Table<const N: usize, V> {
    ids: HashMap<Arc<str>, WordId>,
    words: Vec<Arc<str>>,
    values: BTreeMap<[WordId; N], V>,
}

type WordId = u32;

impl<const N: usize, V> Default for Table<N, V> {
    fn default() -> Self {
        Self { ids: HashMap::new(), words: Vec::new(), values: BTreeMap::new() }
    }
}

impl<const N: usize, V: Default> Table<N, V> {
    fn value(&mut self, labels: [&str; N]) -> &mut V {
        let labels = labels.map(|word| self.id(word));
        self.values.entry(labels).or_default()
    }

    fn id(&mut self, word: &str) -> WordId {
        if let Some(id) = self.ids.get(word) {
            return *id;
        }
        let (id, word): (_, Arc<str>) =
            (WordId::try_from(self.words.len()).unwrap_or(WordId::MAX), word.into());
        self.words.push(Arc::clone(&word));
        self.ids.insert(word, id);
        id
    }

    /// Everything, sorted by labels.
    fn sorted(&self) -> BTreeMap<[&str; N], &V> {
        self.values.iter().map(|(ids, value)| (labels(&self.words, ids), value)).collect()
    }

    /// Drops values, and from time to time the words that nobody uses any more.
    fn retain(&mut self, keep: impl Fn(&[&str; N]) -> bool) {
        let words = &self.words;
        self.values.retain(|ids, _| keep(&labels(words, ids)));
        if self.words.len() > self.values.len() + SPARE_WORDS {
            let Self { words, values, .. } = std::mem::take(self);
            for (ids, value) in values {
                *self.value(labels(&words, &ids)) = value;
            }
        }
    }
}

/// More words than values, by this many, are worth tidying up.
const SPARE_WORDS: usize = 64;

fn labels<'a, const N: usize>(words: &'a [Arc<str>], ids: &[WordId; N]) -> [&'a str; N] {
    ids.map(|id| {
        let word = usize::try_from(id).ok().and_then(|at| words.get(at));
        word.map(|word| &**word).unwrap_or_default()
    })
}

impl<const N: usize> Definition<N> {
    fn labels(&self, values: &[&str; N]) -> Vec<(String, String)> {
        self.labels
            .iter()
            .zip(values)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }
}

/// Counters of one name.
#[derive(Debug)]
pub(crate) struct Counter<const N: usize> {
    definition: Definition<N>,
    values: Mutex<Table<N, f64>>,
}

impl<const N: usize> Counter<N> {
    pub(crate) fn new(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Self {
        Self { definition: Definition { name, help, labels }, values: Mutex::default() }
    }

    pub(crate) fn add(&self, labels: [&str; N], amount: f64) {
        *lock(&self.values).value(labels) += amount;
    }

    pub(crate) fn increment(&self, labels: [&str; N]) {
        self.add(labels, 1.0);
    }

    /// Drops the numbers whose labels are no longer of interest.
    pub(crate) fn retain(&self, keep: impl Fn(&[&str; N]) -> bool) {
        lock(&self.values).retain(keep);
    }

    pub(crate) fn family(&self) -> Family {
        let samples = lock(&self.values)
            .sorted()
            .into_iter()
            .map(|(labels, value)| Sample {
                suffix: "",
                labels: self.definition.labels(&labels),
                value: *value,
            })
            .collect();
        let Definition { name, help, .. } = self.definition;
        Family { name, help, kind: MetricKind::Counter, samples }
    }
}

/// Gauges of one name that are set while the engine runs.
#[derive(Debug)]
pub(crate) struct Gauge<const N: usize>(Counter<N>);

impl<const N: usize> Gauge<N> {
    pub(crate) fn new(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Self {
        Self(Counter::new(name, help, labels))
    }

    pub(crate) fn set(&self, labels: [&str; N], value: f64) {
        *lock(&self.0.values).value(labels) = value;
    }

    pub(crate) fn family(&self) -> Family {
        Family { kind: MetricKind::Gauge, ..self.0.family() }
    }
}

/// Histograms of one name.
#[derive(Debug)]
pub(crate) struct Histogram<const N: usize> {
    definition: Definition<N>,
    bounds: &'static [f64],
    values: Mutex<Table<N, Distribution>>,
}

#[derive(Clone, Debug, Default)]
struct Distribution {
    /// How many were at most as large as each bound.
    buckets: Vec<u64>,
    sum: f64,
    count: u64,
}

impl<const N: usize> Histogram<N> {
    pub(crate) fn new(
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        bounds: &'static [f64],
    ) -> Self {
        Self { definition: Definition { name, help, labels }, bounds, values: Mutex::default() }
    }

    pub(crate) fn observe(&self, labels: [&str; N], took: Duration) {
        let seconds = took.as_secs_f64();
        let mut values = lock(&self.values);
        let distribution = values.value(labels);
        distribution.buckets.resize(self.bounds.len(), 0);
        for (bucket, bound) in distribution.buckets.iter_mut().zip(self.bounds) {
            *bucket += u64::from(seconds <= *bound);
        }
        distribution.sum += seconds;
        distribution.count += 1;
    }

    pub(crate) fn family(&self) -> Family {
        let mut samples = Vec::new();
        for (labels, distribution) in lock(&self.values).sorted() {
            let labels = self.definition.labels(&labels);
            let with_bound = |bound: String| {
                let mut labels = labels.clone();
                labels.push(("le".to_owned(), bound));
                labels
            };
            for (bound, count) in self.bounds.iter().zip(&distribution.buckets) {
                let labels = with_bound(bound.to_string());
                samples.push(Sample { suffix: "_bucket", labels, value: number(*count) });
            }
            let count = number(distribution.count);
            samples.push(Sample { suffix: "_bucket", labels: with_bound("+Inf".to_owned()), value: count });
            samples.push(Sample { suffix: "_sum", labels: labels.clone(), value: distribution.sum });
            samples.push(Sample { suffix: "_count", labels, value: count });
        }
        let Definition { name, help, .. } = self.definition;
        Family { name, help, kind: MetricKind::Histogram, samples }
    }
}

/// A count as Prometheus keeps it.
#[expect(clippy::cast_precision_loss, reason = "Prometheus has nothing but floats")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

fn lock<T>(values: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in between leaves at worst one number uncounted.
    values.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_kept_per_labels_and_can_be_dropped() {
        let counter = Counter::new("a_total", "A.", ["app", "phase"]);
        counter.increment(["web", "Succeeded"]);
        counter.increment(["web", "Succeeded"]);
        counter.increment(["db", "Failed"]);
        let values = |counter: &Counter<2>| -> Vec<f64> {
            counter.family().samples.iter().map(|sample| sample.value).collect()
        };
        assert_eq!(values(&counter), [1.0, 2.0]);
        counter.retain(|[app, _]| *app != "db");
        assert_eq!(values(&counter), [2.0]);
    }

    #[test]
    fn words_that_nobody_uses_any_more_are_let_go() {
        let counter = Counter::new("a_total", "A.", ["app", "phase"]);
        for app in 0..100 {
            counter.increment([&format!("app-{app}"), "Succeeded"]);
        }
        counter.retain(|[app, _]| *app == "app-7");
        counter.increment(["app-7", "Succeeded"]);
        let table = counter.values.lock();
        assert_eq!((table.words.len(), table.ids.len()), (2, 2));
        assert_eq!(table.sorted(), BTreeMap::from([(["app-7", "Succeeded"], &2.0)]));
    }

    #[test]
    fn a_histogram_counts_every_bound_that_was_kept() {
        let histogram = Histogram::new("a", "A.", ["app"], &[0.5, 1.0]);
        histogram.observe(["web"], Duration::from_millis(700));
        histogram.observe(["web"], Duration::from_millis(100));
        histogram.observe(["web"], Duration::from_secs(9));
        let family = histogram.family();
        let shown: Vec<(&str, String, f64)> = family
            .samples
            .iter()
            .map(|sample| {
                let bound = sample.labels.iter().find(|(name, _)| name == "le");
                (sample.suffix, bound.map(|(_, bound)| bound.clone()).unwrap_or_default(), sample.value)
            })
            .collect();
        assert_eq!(
            shown[..3],
            [
                ("_bucket", "0.5".to_owned(), 1.0),
                ("_bucket", "1".to_owned(), 2.0),
                ("_bucket", "+Inf".to_owned(), 3.0),
            ]
        );
        assert_eq!((shown[3].0, shown[4].0, shown[4].2), ("_sum", "_count", 3.0));
        assert!((shown[3].2 - 9.8).abs() < 1e-9);
    }
}
