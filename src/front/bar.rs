//! A bar as a notebook shows it: drawn in HTML, a few times a second, in its place.

use crate::object::Shown;
use crate::simulation::console::{Bar, Stage, Task};
use crate::table::escape;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Which of a bar's pictures it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The first.
    First,
    /// One that takes the place of those before.
    Later,
    /// The last: the run has ended, finished or not.
    Last,
}

/// A bar that hands its pictures on.
pub struct Live<F> {
    task: Task,
    show: F,
    begin: Instant,
    last: Mutex<Last>,
}

/// What was shown last, and heard.
struct Last {
    /// When it was shown.
    shown: Option<Instant>,
    /// When there were news.
    heard: Instant,
    /// The longest time between two news.
    longest: Duration,
}

/// What is done sooner than this needs no bar.
const PATIENCE: Duration = Duration::from_millis(400);

/// Time between two pictures.
const BETWEEN: Duration = Duration::from_millis(250);

/// After this time without news, and three times the longest one so far, a picture says by itself how the run goes on: whoever made it may
/// have been killed, and a front end that restarts a kernel no longer listens to the old one.
const SILENCE: Duration = Duration::from_secs(20);

impl<F: Fn(Shown, Moment) + Send + Sync> Live<F> {
    /// A bar of this task.
    pub fn new(task: &Task, show: F) -> Self {
        Self {
            task: task.clone(),
            show,
            begin: Instant::now(),
            last: Mutex::new(Last {
                shown: None,
                heard: Instant::now(),
                longest: Duration::ZERO,
            }),
        }
    }
}

impl<F: Fn(Shown, Moment) + Send + Sync> Bar for Live<F> {
    fn show(&self, stage: &Stage) {
        let mut last = self.last.lock().unwrap_or_else(|e| e.into_inner());
        last.longest = last.longest.max(last.heard.elapsed());
        last.heard = Instant::now();
        let due = match last.shown {
            None => self.begin.elapsed() >= PATIENCE,
            Some(then) => then.elapsed() >= BETWEEN,
        };
        if due {
            let moment = match last.shown.replace(Instant::now()) {
                None => Moment::First,
                Some(_) => Moment::Later,
            };
            let silence = SILENCE.max(3 * last.longest);
            (self.show)(draw(&self.task, stage, Some(silence)), moment);
        }
    }

    fn finish(&self, stage: &Stage) {
        let last = self.last.lock().unwrap_or_else(|e| e.into_inner());
        if last.shown.is_some() {
            (self.show)(draw(&self.task, stage, None), Moment::Last);
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

/// A picture; of a run that goes on, with the time after which it is out of date.
fn draw(task: &Task, stage: &Stage, silence: Option<Duration>) -> Shown {
    let going = silence.is_some();
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
        let on = Some(&task.goes_on).filter(|on| !on.is_empty());
        facts.push(on.map_or("stopped".into(), |on| format!("stopped: {on}")));
    }
    if stage.failed > 0 {
        facts.push(format!("{} failed", stage.failed));
    }
    facts.extend(stage.last());
    facts.extend(stage.said.clone());
    let watched = stage.watched.as_ref();
    let curve = watched.and_then(|(_, values)| sparkline(values));
    let text = format!("{}: {}", task.name, facts.join(", "));
    let colour = match (going, share < 1.0) {
        (true, _) => "#2a7fba",
        (false, false) => "#3a9a5b",
        (false, true) => "#c77f1a",
    };
    let mut html = format!(
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
    if let Some(time) = silence {
        html += &later(task, time);
    }
    Shown {
        text,
        html: Some(html),
        ..Shown::default()
    }
}

/// What a picture says when no other has taken its place for so long.
fn later(task: &Task, silence: Duration) -> String {
    let on = match task.goes_on.is_empty() {
        true => String::new(),
        false => format!("; if the session is over, {}", task.goes_on),
    };
    let time = silence.as_secs();
    format!(
        "<div role=\"status\" style=\"font-size:0;animation:ergodic-silence 0s {time}s forwards\">no news for {time} s{}</div>\
         <style>@keyframes ergodic-silence{{to{{font-size:.92em}}}}</style>",
        escape(&on)
    )
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
            goes_on: "continue with %continue runs/a".into(),
        }
    }

    #[test]
    fn a_bar_tells_share_rate_time_left_and_what_is_watched() {
        let stage = Stage {
            done: 50,
            total: 200,
            failed: 1,
            seconds: 5.0,
            rate: 10.0,
            watched: Some(("cost".into(), vec![3.0, 2.0, 1.5])),
            said: Some("R̂ 1.034, ESS 210".into()),
        };
        let shown = draw(&task(), &stage, Some(Duration::from_secs(30)));
        let text = "a<b: 25 %, 10.0 steps/s, 5 s elapsed, 15 s left, 1 failed, cost 1.5000, R̂ 1.034, ESS 210";
        assert_eq!(shown.text, text);
        let html = shown.html.unwrap();
        assert!(html.contains("a&lt;b") && html.contains("width:25.0%"));
        assert!(
            html.contains("<polyline points=\"1.0,1.0 60.0,14.3 119.0,21.0\""),
            "{html}"
        );
        assert!(
            html.contains("0s 30s forwards")
                && html.contains("if the session is over, continue with %continue runs/a")
        );
        let done = draw(&task(), &stage, None);
        assert!(
            done.text
                .contains("stopped: continue with %continue runs/a")
        );
        assert!(!done.html.unwrap().contains("silence"));
    }

    #[test]
    fn durations_are_short() {
        assert_eq!(duration(3.4), "3 s");
        assert_eq!(duration(65.0), "1:05");
        assert_eq!(duration(7260.0), "2 h 01 min");
        assert_eq!(duration(f64::INFINITY), "?");
    }
}
