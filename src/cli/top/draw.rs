//! How the screen looks.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Margin, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Sparkline, Wrap};

use super::rate::rates;
use super::rows::{Health, JobRow, WorkerRow, plain};
use super::screen::{Overlay, Said, Screen, Table, about};
use super::unit_map::Mark;
use crate::cli::report::{counted, predicted, rounded};
use crate::cluster::protocol::v1;

/// Nothing can be read on less.
const LEAST: (u16, u16) = (40, 8);

/// Jobs' titles are made as wide as the widest, but no wider than this.
const MOST_TITLE: usize = 36;

/// The keys, as the help has them.
const KEYS: [(&str, &str); 9] = [
    ("↑ ↓ j k", "choose a job or a worker; Home and End, the first and the last"),
    ("Tab ← →", "the other table"),
    ("Enter", "all about the job"),
    ("p", "pause the job: no more of its units are handed out"),
    ("r", "resume the job, and try units again that were set aside"),
    ("c", "cancel the job, after a question"),
    ("d", "drain the worker, after a question: it gets nothing more until it restarts"),
    ("?", "these lines"),
    ("q Ctrl-C", "the end"),
];

/// Draws the screen as it is `at_ms` after its beginning.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen, at_ms: u64) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let (width, height) = LEAST;
        return frame.render_widget(
            Paragraph::new(format!("a terminal of {width} x {height}, please")),
            area,
        );
    }
    let rows = Rows::of(area.height - 2, screen.jobs.len(), screen.workers.len());
    let [top, jobs, middle, workers, log, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(rows.jobs),
        Constraint::Length(rows.middle),
        Constraint::Length(rows.workers),
        Constraint::Length(rows.log),
        Constraint::Length(1),
    ])
    .areas(area);
    let ink = Ink(screen.coloured);
    draw_head(frame, top, screen, at_ms, ink);
    draw_jobs(frame, jobs, screen, ink);
    if rows.middle > 0 && screen.job().is_some_and(|job| job.shares.is_none()) {
        draw_proof(frame, middle, screen, ink);
    } else if rows.middle > 0 {
        let [map, rate] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(middle);
        draw_map(frame, map, screen, ink);
        draw_rate(frame, rate, screen, ink);
    }
    draw_workers(frame, workers, screen, at_ms, ink);
    if rows.log > 0 {
        draw_log(frame, log, screen, ink);
    }
    draw_foot(frame, bottom, screen, ink);
    match &screen.overlay {
        Overlay::None | Overlay::Question(..) => {}
        Overlay::Keys => draw_keys(frame, area, ink),
        Overlay::Report(line) => draw_report(frame, area, screen, *line),
    }
}

/// How many rows each part has, borders included; none for what there is no room for.
struct Rows {
    jobs: u16,
    middle: u16,
    workers: u16,
    log: u16,
}

impl Rows {
    fn of(height: u16, jobs: usize, workers: usize) -> Self {
        const BORDERS: u16 = 2;
        let wanted =
            |rows: usize| u16::try_from(rows.max(1)).unwrap_or(u16::MAX).saturating_add(BORDERS);
        let (middle, log) = match height {
            0..14 => (0, 0),
            14..22 => (0, 5),
            22..40 => (6, 6),
            _ => (10, 10),
        };
        let tables = height - middle - log;
        let jobs = wanted(jobs).min(tables / 2);
        let workers = wanted(workers).min(tables - jobs);
        // What the tables do not need the others have.
        let spare = tables - jobs - workers;
        let (middle, workers, log) = match (middle, log) {
            (0, 0) => (0, workers + spare, 0),
            (0, log) => (0, workers, log + spare),
            (middle, log) => (middle + spare / 2, workers, log + spare.div_ceil(2)),
        };
        Self { jobs, middle, workers, log }
    }
}

/// Styles, with colours or without.
#[derive(Clone, Copy)]
struct Ink(bool);

impl Ink {
    fn colour(self, colour: Color) -> Style {
        if self.0 { Style::new().fg(colour) } else { Style::new() }
    }

    fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// The frame of a part; of the table in which keys choose it is bold.
    fn frame<'a>(self, title: String, chosen: bool) -> Block<'a> {
        let style = if chosen {
            Style::new().add_modifier(Modifier::BOLD)
        } else {
            self.colour(Color::DarkGray)
        };
        Block::bordered().title(format!(" {title} ")).border_style(style)
    }
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, screen: &Screen, at_ms: u64, ink: Ink) {
    let Screen { address, build, at_work, .. } = screen;
    let who =
        format!(" {address}  nqueens {build}, {} at work", counted((*at_work).into(), "worker"));
    let mut spans = vec![Span::styled(who, Style::new().add_modifier(Modifier::BOLD))];
    if let Some((since_ms, why)) = &screen.lost {
        let ago = predicted(std::time::Duration::from_millis(at_ms.saturating_sub(*since_ms)));
        spans.push(Span::styled(format!("  lost for {ago}: {why}"), ink.bad()));
    } else if !screen.trouble.is_empty() {
        spans.push(Span::styled(format!("  {}", screen.trouble), ink.bad()));
    }
    frame.render_widget(Line::from(spans), area);
    if screen.lost.is_none() {
        let time = clock(screen, screen.now_ms(at_ms));
        frame.render_widget(Line::from(format!("{time} ")).alignment(Alignment::Right), area);
    }
}

/// The part of a table that is seen: so many rows from the first, the chosen one among them.
fn window(rows: usize, height: u16, chosen: Option<usize>) -> std::ops::Range<usize> {
    let height = usize::from(height);
    let begin = chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(height));
    begin..rows.min(begin + height)
}

/// The title of a table: how many rows are not seen.
fn table_title(noun: &str, rows: usize, seen: &std::ops::Range<usize>) -> String {
    if seen.len() == rows {
        noun.to_owned()
    } else {
        format!("{noun} {} to {} of {rows}", seen.start + 1, seen.end)
    }
}

fn draw_jobs(frame: &mut Frame<'_>, area: Rect, screen: &Screen, ink: Ink) {
    let inside = area.inner(Margin::new(1, 1));
    let chosen = screen.job_place();
    let seen = window(screen.jobs.len(), inside.height, chosen);
    let title = table_title("Jobs", screen.jobs.len(), &seen);
    frame.render_widget(ink.frame(title, screen.table == Table::Jobs), area);
    if screen.jobs.is_empty() {
        let nothing = "no jobs; nqueens submit count N, submit first N or beautiful N begins one";
        return frame.render_widget(Paragraph::new(nothing), inside);
    }
    let width =
        screen.jobs.iter().map(|job| job.title.chars().count()).max().unwrap_or(0).min(MOST_TITLE);
    for (row, place) in inside.rows().zip(seen) {
        draw_job(frame, row, &screen.jobs[place], chosen == Some(place), width, ink);
    }
}

/// "> a979411d running    count of 19 queens   ━━━━━━━━──────  17.2 % of 64 units, about 56 s left".
fn draw_job(frame: &mut Frame<'_>, area: Rect, job: &JobRow, chosen: bool, width: usize, ink: Ink) {
    let state = match job.state {
        "running" => ink.colour(Color::Cyan),
        "finished" => ink.colour(Color::Green),
        "disputed" => ink.bad(),
        _ => ink.colour(Color::Yellow),
    };
    let name =
        Style::new().add_modifier(if chosen { Modifier::REVERSED } else { Modifier::empty() });
    let mut spans = vec![
        Span::raw(if chosen { "> " } else { "  " }),
        Span::styled(job.short().to_owned(), name),
        Span::styled(format!(" {:<9} ", job.state), state),
        Span::raw(format!("{:<width$} ", job.title)),
    ];
    if let Some((done, verified)) = job
        .shares
        .filter(|_| matches!(job.state, "running" | "paused" | "disputed") && area.width >= 100)
    {
        spans.extend(bar(20, done, verified, ink));
        spans.push(Span::raw(" "));
    }
    spans.push(Span::styled(job.progress.clone(), if job.ails { ink.bad() } else { Style::new() }));
    frame.render_widget(Line::from(spans), area);
}

/// A bar of so many cells: verified, counted, and the rest.
fn bar(cells: usize, done: f64, verified: f64, ink: Ink) -> [Span<'static>; 3] {
    // The casts saturate.
    let filled = |share: f64| ((share * cells as f64) as usize).min(cells);
    let (done, verified) = (filled(done), filled(verified.min(done)));
    let part = |mark: Mark, length: usize| {
        Span::styled(mark.symbol().to_string().repeat(length), ink.colour(mark.colour()))
    };
    [
        part(Mark::Verified, verified),
        part(Mark::Counted, done - verified),
        part(Mark::Open, cells - done),
    ]
}

fn draw_map(frame: &mut Frame<'_>, area: Rect, screen: &Screen, ink: Ink) {
    let title = screen.job().map_or("Units".to_owned(), |job| format!("Units of {}", job.short()));
    let mut block = ink.frame(title, false);
    let Some(map) = screen.map() else {
        return frame.render_widget(block, area);
    };
    let legend = |mark: &Mark| {
        [
            Span::styled(format!(" {}", mark.symbol()), ink.colour(mark.colour())),
            Span::raw(format!(" {}", mark.name())),
        ]
    };
    let shown = Mark::ALL.iter().filter(|&&mark| mark != Mark::Aside);
    block = block.title_bottom(Line::from(
        shown.flat_map(legend).chain([Span::raw(" ")]).collect::<Vec<_>>(),
    ));
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inside.width).max(1);
    let marks = map.marks(width * usize::from(inside.height));
    for (row, marks) in inside.rows().zip(marks.chunks(width)) {
        let cell = |mark: &Mark| Span::styled(mark.symbol().to_string(), ink.colour(mark.colour()));
        frame.render_widget(Line::from(marks.iter().map(cell).collect::<Vec<_>>()), row);
    }
}

/// A proof has no units; what is known of it stands in their place.
fn draw_proof(frame: &mut Frame<'_>, area: Rect, screen: &Screen, ink: Ink) {
    let Some(job) = screen.job() else { return };
    let block = ink.frame(format!("Proof {}", job.short()), false);
    frame.render_widget(Paragraph::new(job.report.as_str()).block(block), area);
}

fn draw_rate(frame: &mut Frame<'_>, area: Rect, screen: &Screen, ink: Ink) {
    let rates = rates(screen.history(), usize::from(area.width.saturating_sub(2)));
    let most = rates.iter().copied().fold(0.0, f64::max);
    let title = if most > 0.0 {
        format!("Rate, up to {} units/s", rounded(most))
    } else {
        "Rate".to_owned()
    };
    let mut block = ink.frame(title, false);
    if let [first, .., last] = screen.history() {
        let span =
            predicted(std::time::Duration::from_millis(last.at_ms.saturating_sub(first.at_ms)));
        block = block.title_bottom(format!(
            " {} to {}: {span} ",
            clock(screen, first.at_ms),
            clock(screen, last.at_ms)
        ));
    }
    /// A bar has eight steps a row; more are finer than any terminal.
    const FULL: f64 = 10_000.0;
    let heights = rates.iter().map(|rate| (rate / most.max(f64::MIN_POSITIVE) * FULL) as u64);
    let line = Sparkline::default().block(block).data(heights.collect::<Vec<_>>()).max(FULL as u64);
    frame.render_widget(line.style(ink.colour(Color::Cyan)), area);
}

fn draw_workers(frame: &mut Frame<'_>, area: Rect, screen: &Screen, at_ms: u64, ink: Ink) {
    let inside = area.inner(Margin::new(1, 1));
    let chosen = screen.worker_place();
    let seen = window(screen.workers.len(), inside.height, chosen);
    let title = table_title("Workers", screen.workers.len(), &seen);
    frame.render_widget(ink.frame(title, screen.table == Table::Workers), area);
    if screen.workers.is_empty() {
        let nothing = "no workers since the coordinator started; nqueens worker --join ADDR is one";
        return frame.render_widget(Paragraph::new(nothing), inside);
    }
    let now_ms = screen.now_ms(at_ms);
    let width = screen.workers.iter().map(|worker| worker.name.len()).max().unwrap_or(0);
    for (row, place) in inside.rows().zip(seen) {
        draw_worker(
            frame,
            row,
            &screen.workers[place],
            chosen == Some(place),
            (width, now_ms),
            ink,
        );
    }
}

fn draw_worker(
    frame: &mut Frame<'_>,
    area: Rect,
    worker: &WorkerRow,
    chosen: bool,
    (width, now_ms): (usize, u64),
    ink: Ink,
) {
    let name =
        Style::new().add_modifier(if chosen { Modifier::REVERSED } else { Modifier::empty() });
    let state = match worker.health {
        Health::Well => Style::new(),
        Health::Resting | Health::Draining => ink.colour(Color::Yellow),
        Health::Faulty(_) | Health::Quarantined(_) => ink.bad(),
    };
    let temperature =
        worker.temperature_c.map(|degrees| format!("{degrees:.0} °C")).unwrap_or_default();
    let done = format!("{} done", counted(worker.units_done.into(), "unit"));
    let line = Line::from(vec![
        Span::raw(if chosen { "> " } else { "  " }),
        Span::styled(worker.name.clone(), name),
        Span::raw(" ".repeat(width.saturating_sub(worker.name.len()))),
        Span::raw(format!("  {:<14} {:<6} {done:<16} ", worker.heard_of(now_ms), temperature)),
        Span::styled(worker.state(), state),
        Span::styled(format!("  {}", worker.devices), ink.colour(Color::DarkGray)),
    ]);
    frame.render_widget(line, area);
}

fn draw_log(frame: &mut Frame<'_>, area: Rect, screen: &Screen, ink: Ink) {
    let block = ink.frame("Log".to_owned(), false);
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let first = screen.events.len().saturating_sub(inside.height.into());
    for (row, event) in inside.rows().zip(screen.events.range(first..)) {
        let style = match event.level() {
            v1::EventLevel::Error => ink.bad(),
            v1::EventLevel::Warning => ink.colour(Color::Yellow),
            _ => Style::new(),
        };
        let job = about(event);
        let job = if job.is_empty() { job } else { format!("{job} ") };
        let line = format!(" {}  {job}{}", clock(screen, event.at_ms), plain(&event.text));
        frame.render_widget(Line::styled(line, style), row);
    }
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, screen: &Screen, ink: Ink) {
    let line = match (&screen.overlay, &screen.said) {
        (Overlay::Question(question, _), _) => {
            Line::styled(format!(" {question} y yes, any other key no"), ink.bad())
        }
        (_, Said::Well(said)) => Line::raw(format!(" {said}")),
        (_, Said::Badly(said)) => Line::styled(format!(" {said}"), ink.bad()),
        (_, Said::Nothing) => Line::raw(
            " q end  ↑↓ Tab choose  Enter more  p pause  r resume  c cancel  d drain  ? keys",
        ),
    };
    frame.render_widget(line, area);
}

/// A part in the middle of the screen, with nothing behind it.
fn over(frame: &mut Frame<'_>, area: Rect, width: u16, height: u16, title: String) -> Rect {
    let area = area.centered(Constraint::Length(width), Constraint::Length(height));
    let block = Block::bordered().title(format!(" {title} "));
    let inside = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    inside
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, ink: Ink) {
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(keys, what)| {
            Line::from(vec![
                Span::styled(format!(" {keys:<9} "), ink.colour(Color::Cyan)),
                Span::raw(*what),
            ])
        })
        .chain([Line::raw(""), Line::from(" any key goes back")])
        .collect();
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2);
    let inside = over(frame, area, 92.min(area.width), height.min(area.height), "Keys".to_owned());
    frame.render_widget(Paragraph::new(lines), inside);
}

fn draw_report(frame: &mut Frame<'_>, area: Rect, screen: &Screen, line: u16) {
    let Some(job) = screen.job() else { return };
    let title = format!("{} — ↑↓ to read on, any other key goes back", job.called());
    let inside = over(frame, area, area.width - 4, area.height - 2, title);
    frame.render_widget(
        Paragraph::new(job.report.as_str()).wrap(Wrap { trim: false }).scroll((line, 0)),
        inside,
    );
}

/// A time of day where the user is: "19:26:59".
fn clock(screen: &Screen, at_ms: u64) -> String {
    let at_ms = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at_ms
        .map(|at| at.to_zoned(screen.zone.clone()).strftime("%H:%M:%S").to_string())
        .unwrap_or_default()
}
