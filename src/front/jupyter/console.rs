//! What a session says, as the output of the cell that runs.

use crate::front::kernel::{Output, Rich, Stream};
use crate::simulation::console::{Bar, Console, Shown, Stage, Task};
use crate::table::escape;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The output of the cell that runs.
pub struct Cell {
    out: Mutex<Output>,
    /// Bars so far, so that each has a name.
    bars: AtomicU64,
}

impl Cell {
    /// Nobody listens yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            out: Mutex::new(Output::nowhere()),
            bars: AtomicU64::new(0),
        })
    }

    /// From now on, this cell.
    pub fn attach(&self, out: &Output) {
        *self.out.lock().unwrap_or_else(|e| e.into_inner()) = out.clone();
    }

    fn out(&self) -> Output {
        self.out.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

impl Console for Cell {
    fn print(&self, text: &str) {
        self.out().stream(Stream::Stdout, &format!("{text}\n"));
    }

    fn remark(&self, text: &str) {
        self.out().stream(Stream::Stderr, &format!("{text}\n"));
    }

    fn show(&self, shown: &Shown) {
        self.out().display(rich(shown), None);
    }

    fn begin(&self, task: &Task) -> Arc<dyn Bar> {
        let number = self.bars.fetch_add(1, Ordering::Relaxed);
        Arc::new(Live {
            task: task.clone(),
            out: self.out(),
            id: format!("ergodic-{}-{number}", std::process::id()),
            begin: Instant::now(),
            last: Mutex::new(None),
        })
    }
}

/// A value in the formats that a notebook takes.
pub(super) fn rich(shown: &Shown) -> Rich {
    let mut out = Rich::text(&shown.text);
    if let Some(html) = &shown.html {
        out = out.with("text/html", html.as_str());
    }
    if let Some(svg) = &shown.svg {
        out = out.with("image/svg+xml", svg.as_str());
    }
    out
}

/// A bar that is updated in its place.
struct Live {
    task: Task,
    out: Output,
    id: String,
    begin: Instant,
    /// When it was shown last.
    last: Mutex<Option<Instant>>,
}

/// What is done sooner than this needs no bar.
const PATIENCE: Duration = Duration::from_millis(400);

/// Time between two updates.
const BETWEEN: Duration = Duration::from_millis(250);

impl Bar for Live {
    fn show(&self, stage: &Stage) {
        let mut last = self.last.lock().unwrap_or_else(|e| e.into_inner());
        let due = match *last {
            None => self.begin.elapsed() >= PATIENCE,
            Some(then) => then.elapsed() >= BETWEEN,
        };
        if !due {
            return;
        }
        let rich = draw(&self.task, stage, true);
        match last.replace(Instant::now()) {
            None => self.out.display(rich, Some(&self.id)),
            Some(_) => self.out.update(&self.id, rich),
        }
    }

    fn finish(&self, stage: &Stage) {
        let last = self.last.lock().unwrap_or_else(|e| e.into_inner());
        if last.is_some() {
            self.out.update(&self.id, draw(&self.task, stage, false));
        }
    }
}

/// `1:05` or `3.2 s`.
fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() || s > 3e7 => "?".into(),
        s if s < 60.0 => format!("{s:.0} s"),
        s if s < 3600.0 => format!("{:.0}:{:02.0}", (s / 60.0).floor(), (s % 60.0).floor()),
        s => format!(
            "{:.0} h {:02.0} min",
            (s / 3600.0).floor(),
            (s % 3600.0 / 60.0).floor()
        ),
    }
}

fn draw(task: &Task, stage: &Stage, going: bool) -> Rich {
    let share = task.fraction(stage);
    let percent = format!("{:.0} %", 100.0 * share);
    let rate = task.rate(stage);
    let mut facts = vec![
        percent.clone(),
        rate,
        format!("{} elapsed", duration(stage.seconds)),
    ];
    if going {
        facts.push(format!("{} left", duration(task.left(stage))));
    } else if share < 1.0 {
        facts.push("stopped".into());
    }
    if stage.failed > 0 {
        facts.push(format!("{} failed", stage.failed));
    }
    facts.extend(stage.last());
    let watched = stage.watched.as_ref();
    let curve = watched.and_then(|(_, values)| sparkline(values));
    let text = format!("{}: {}", task.name, facts.join(", "));
    let colour = match (going, share < 1.0) {
        (true, _) => "#2a7fba",
        (false, false) => "#3a9a5b",
        (false, true) => "#c77f1a",
    };
    let html = format!(
        "<div class=\"ergodic-progress\" role=\"progressbar\" aria-valuenow=\"{:.0}\" aria-valuemin=\"0\" aria-valuemax=\"100\" aria-label=\"{name}\" \
         style=\"display:flex;flex-wrap:wrap;align-items:center;gap:.3em .8em;font-size:.92em;font-variant-numeric:tabular-nums\">\
         <b>{name}</b><span style=\"flex:0 1 14em;min-width:6em;height:.6em;border-radius:.3em;background:rgba(127,127,127,.25);overflow:hidden\">\
         <span style=\"display:block;height:100%;width:{:.1}%;background:{colour}\"></span></span><span>{facts}</span>{}</div>",
        100.0 * share,
        100.0 * share,
        curve.unwrap_or_default(),
        name = escape(&task.name),
        facts = escape(&facts.join(" · ")),
    );
    Rich::text(text).with("text/html", html)
}

/// A small curve, without axes.
fn sparkline(values: &[f64]) -> Option<String> {
    if values.len() < 3 {
        return None;
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = if high > low { high - low } else { 1.0 };
    let last = (values.len() - 1) as f64;
    let points: String = values
        .iter()
        .enumerate()
        .map(|(i, v)| {
            format!(
                "{:.1},{:.1} ",
                118.0 * i as f64 / last + 1.0,
                21.0 - 20.0 * (v - low) / span
            )
        })
        .collect();
    Some(format!(
        "<svg width=\"120\" height=\"22\" viewBox=\"0 0 120 22\" aria-hidden=\"true\"><polyline points=\"{}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.2\"/></svg>",
        points.trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        Task {
            name: "a<b".into(),
            unit: "steps",
            total: 200,
            first: 0,
        }
    }

    #[test]
    fn a_bar_tells_share_rate_time_left_and_what_is_watched() {
        let stage = Stage {
            done: 50,
            failed: 1,
            seconds: 5.0,
            rate: 10.0,
            watched: Some(("cost".into(), vec![3.0, 2.0, 1.5])),
        };
        let rich = draw(&task(), &stage, true);
        let text = "a<b: 25 %, 10.0 steps/s, 5 s elapsed, 15 s left, 1 failed, cost 1.5000";
        assert_eq!(rich.plain(), Some(text));
        let html = rich.data["text/html"].as_str().unwrap();
        assert!(html.contains("a&lt;b") && html.contains("width:25.0%"));
        assert!(
            html.contains("<polyline points=\"1.0,1.0 60.0,14.3 119.0,21.0\""),
            "{html}"
        );
        let done = draw(&task(), &Stage { done: 50, ..stage }, false);
        assert!(done.plain().unwrap().contains("stopped"));
    }

    #[test]
    fn durations_are_short() {
        assert_eq!(duration(3.4), "3 s");
        assert_eq!(duration(65.0), "1:05");
        assert_eq!(duration(7260.0), "2 h 01 min");
        assert_eq!(duration(f64::INFINITY), "?");
    }
}
