//! Metrics with labels, and the form in which they are exported.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// The Prometheus type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that only grows.
    Counter,
    /// A current value.
    Gauge,
    /// Observed values, counted in buckets.
    Histogram,
}

/// All samples of one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// The metric's name.
    pub name: &'static str,
    /// The help text, one sentence.
    pub help: &'static str,
    /// The metric's type.
    pub kind: MetricKind,
    /// One for each set of labels; several for a histogram.
    pub samples: Vec<Sample>,
}

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// `_bucket`, `_sum` or `_count` of a histogram; else empty.
    pub suffix: &'static str,
    /// Label names and values.
    pub labels: Vec<(String, String)>,
    /// The measured value.
    pub value: f64,
}

impl Family {
    /// A family of gauges without samples.
    pub(crate) fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: MetricKind::Gauge, samples: Vec::new() }
    }

    /// A family of counters without samples, for values that are counted elsewhere.
    pub(crate) fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: MetricKind::Counter, samples: Vec::new() }
    }

    /// Adds one sample.
    pub(crate) fn push(&mut self, labels: &[(&str, &str)], value: f64) {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.samples.push(Sample { suffix: "", labels, value });
    }

    /// Adds one sample and returns the family.
    pub(crate) fn with(mut self, labels: &[(&str, &str)], value: f64) -> Self {
        self.push(labels, value);
        self
    }
}

/// Name, help text and label names of a metric.
#[derive(Debug)]
pub(super) struct Definition<const N: usize> {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) labels: [&'static str; N],
}

/// Values by their labels. A thousand apps have tens of thousands of values but few distinct label texts, so
/// each text is stored once.
#[derive(Debug)]
struct Table<const N: usize, V> {
    ids: HashMap<Arc<str>, TextId>,
    texts: Vec<Arc<str>>,
    values: BTreeMap<[TextId; N], V>,
}

type TextId = u32;

impl<const N: usize, V> Default for Table<N, V> {
    fn default() -> Self {
        Self { ids: HashMap::new(), texts: Vec::new(), values: BTreeMap::new() }
    }
}

impl<const N: usize, V: Default> Table<N, V> {
    fn value(&mut self, labels: [&str; N]) -> &mut V {
        let labels = labels.map(|text| self.id(text));
        self.values.entry(labels).or_default()
    }

    fn id(&mut self, text: &str) -> TextId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let (id, text): (_, Arc<str>) =
            (TextId::try_from(self.texts.len()).unwrap_or(TextId::MAX), text.into());
        self.texts.push(Arc::clone(&text));
        self.ids.insert(text, id);
        id
    }

    /// All values, sorted by labels.
    fn sorted(&self) -> BTreeMap<[&str; N], &V> {
        self.values.iter().map(|(ids, value)| (labels(&self.texts, ids), value)).collect()
    }

    /// Drops values. Also drops unused texts once there are many of them.
    fn retain(&mut self, keep: impl Fn(&[&str; N]) -> bool) {
        let texts = &self.texts;
        self.values.retain(|ids, _| keep(&labels(texts, ids)));
        if self.texts.len() > self.values.len() + SPARE_TEXTS {
            let Self { texts, values, .. } = std::mem::take(self);
            for (ids, value) in values {
                *self.value(labels(&texts, &ids)) = value;
            }
        }
    }
}

/// Unused texts are dropped once there are this many more texts than values.
const SPARE_TEXTS: usize = 64;

fn labels<'a, const N: usize>(texts: &'a [Arc<str>], ids: &[TextId; N]) -> [&'a str; N] {
    ids.map(|id| {
        let text = usize::try_from(id).ok().and_then(|at| texts.get(at));
        text.map(|text| &**text).unwrap_or_default()
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

    /// Drops the values whose labels `keep` rejects.
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
    /// For each bound, how many observations were at most that large.
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

    /// Drops the values whose labels do not pass.
    pub(crate) fn retain(&self, keep: impl Fn(&[&str; N]) -> bool) {
        lock(&self.values).retain(keep);
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

/// A count as a Prometheus value.
#[expect(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

fn lock<T>(values: &Mutex<T>) -> MutexGuard<'_, T> {
    values.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_of_labels_has_its_own_counter_and_can_be_dropped() {
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
    fn unused_label_texts_are_dropped() {
        let counter = Counter::new("a_total", "A.", ["app", "phase"]);
        for app in 0..100 {
            counter.increment([&format!("app-{app}"), "Succeeded"]);
        }
        counter.retain(|[app, _]| *app == "app-7");
        counter.increment(["app-7", "Succeeded"]);
        let table = counter.values.lock();
        assert_eq!((table.texts.len(), table.ids.len()), (2, 2));
        assert_eq!(table.sorted(), BTreeMap::from([(["app-7", "Succeeded"], &2.0)]));
    }

    #[test]
    fn a_histogram_counts_an_observation_in_every_bucket_above_it() {
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
