//! Drawing of the screen.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Margin, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Sparkline, Wrap};

use super::rate::rates;
use super::rows::{Health, JobRow, WorkerRow, plain};
use super::screen::{Message, Overlay, Screen, Table, about};
use super::unit_map::Mark;
use crate::cluster::protocol::v1;
use crate::report::{counted, predicted, rounded};

/// The minimum width and height of the terminal.
const MIN_SIZE: (u16, u16) = (40, 8);

/// The maximum widths of the columns of times and of titles.
const MAX_LEFT: usize = 26;
const MAX_TITLE: usize = 36;
/// The number of cells of a bar, and the columns that must stay free beside one.
const BAR: usize = 20;
const FREE_BESIDE_BAR: usize = 14;

/// The keys and their effects, for the help.
const KEYS: [(&str, &str); 9] = [
    ("↑ ↓ j k", "select a job or a worker; Home and End select the first and the last"),
    ("Tab ← →", "switch to the other table"),
    ("Enter", "show the report of the job"),
    ("p", "pause the job: lease no more of its units"),
    ("r", "resume the job, and retry the units that were set aside"),
    ("c", "cancel the job, after a confirmation"),
    ("d", "drain the worker until it restarts, after a confirmation"),
    ("?", "show this help"),
    ("q Ctrl-C", "quit"),
];

/// Draws the screen `at_ms` after the start.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen, at_ms: u64) {
    let area = frame.area();
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        let (width, height) = MIN_SIZE;
        return frame.render_widget(
            Paragraph::new(format!("terminal too small: {width} x {height} needed")),
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
    let styles = Styles(screen.coloured);
    draw_head(frame, top, screen, at_ms, styles);
    draw_jobs(frame, jobs, screen, styles);
    if rows.middle > 0 && screen.job().is_some_and(|job| job.shares.is_none()) {
        draw_proof(frame, middle, screen, styles);
    } else if rows.middle > 0 {
        let [map, rate] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(middle);
        draw_map(frame, map, screen, styles);
        draw_rate(frame, rate, screen, styles);
    }
    draw_workers(frame, workers, screen, at_ms, styles);
    if rows.log > 0 {
        draw_log(frame, log, screen, styles);
    }
    draw_foot(frame, bottom, screen, styles);
    match &screen.overlay {
        Overlay::None | Overlay::Question(..) => {}
        Overlay::Keys => draw_keys(frame, area, styles),
        Overlay::Report(line) => draw_report(frame, area, screen, *line),
    }
}

/// The number of rows of each part, including borders; 0 if it does not fit.
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
        // Rows that the tables do not need go to the other parts.
        let spare = tables - jobs - workers;
        let (middle, workers, log) = match (middle, log) {
            (0, 0) => (0, workers + spare, 0),
            (0, log) => (0, workers, log + spare),
            (middle, log) => (middle + spare / 2, workers, log + spare.div_ceil(2)),
        };
        Self { jobs, middle, workers, log }
    }
}

/// Styles, with or without colours.
#[derive(Clone, Copy)]
struct Styles(bool);

impl Styles {
    fn colour(self, colour: Color) -> Style {
        if self.0 { Style::new().fg(colour) } else { Style::new() }
    }

    fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Returns the frame of a part. The frame of the table that has the focus is bold.
    fn frame<'a>(self, title: String, selected: bool) -> Block<'a> {
        let style = if selected {
            Style::new().add_modifier(Modifier::BOLD)
        } else {
            self.colour(Color::DarkGray)
        };
        Block::bordered().title(format!(" {title} ")).border_style(style)
    }
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, screen: &Screen, at_ms: u64, styles: Styles) {
    let Screen { address, build, online, .. } = screen;
    let who =
        format!(" {address}  nqueens {build}, {} online", counted((*online).into(), "worker"));
    let mut spans = vec![Span::styled(who, Style::new().add_modifier(Modifier::BOLD))];
    if let Some((since_ms, why)) = &screen.disconnected {
        let ago = predicted(std::time::Duration::from_millis(at_ms.saturating_sub(*since_ms)));
        spans.push(Span::styled(format!("  disconnected for {ago}: {why}"), styles.bad()));
    } else if !screen.trouble.is_empty() {
        spans.push(Span::styled(format!("  {}", screen.trouble), styles.bad()));
    }
    frame.render_widget(Line::from(spans), area);
    if screen.disconnected.is_none() {
        let time = clock(screen, screen.now_ms(at_ms));
        frame.render_widget(Line::from(format!("{time} ")).alignment(Alignment::Right), area);
    }
}

/// Returns the visible rows of a table, which include the selected one.
fn window(rows: usize, height: u16, selected: Option<usize>) -> std::ops::Range<usize> {
    let height = usize::from(height);
    let begin = selected.map_or(0, |selected| (selected + 1).saturating_sub(height));
    begin..rows.min(begin + height)
}

/// Returns the title of a table, with the range of visible rows if some are hidden.
fn table_title(noun: &str, rows: usize, visible: &std::ops::Range<usize>) -> String {
    if visible.len() == rows {
        noun.to_owned()
    } else {
        format!("{noun} {} to {} of {rows}", visible.start + 1, visible.end)
    }
}

fn draw_jobs(frame: &mut Frame<'_>, area: Rect, screen: &Screen, styles: Styles) {
    let inside = area.inner(Margin::new(1, 1));
    let selected = screen.selected_job_index();
    let visible = window(screen.jobs.len(), inside.height, selected);
    let title = table_title("Jobs", screen.jobs.len(), &visible);
    frame.render_widget(styles.frame(title, screen.table == Table::Jobs), area);
    if screen.jobs.is_empty() {
        let nothing = "no jobs; submit one with nqueens submit count N, first N or beautiful N";
        return frame.render_widget(Paragraph::new(nothing), inside);
    }
    let widest = |text: fn(&JobRow) -> &String, most: usize| {
        screen.jobs.iter().map(|job| text(job).chars().count()).max().unwrap_or(0).min(most)
    };
    let widths = [
        widest(|job| &job.percent, MAX_LEFT),
        widest(|job| &job.left, MAX_LEFT),
        widest(|job| &job.title, MAX_TITLE),
    ];
    for (row, place) in inside.rows().zip(visible) {
        draw_job(frame, row, &screen.jobs[place], selected == Some(place), widths, styles);
    }
}

/// Draws a job, with the columns of the percentage, the time left and the title this wide:
/// "> a979411d  17.2 %  about 56 s left  count of 19 queens  ███▓▓·····  1.2 units/s".
fn draw_job(
    frame: &mut Frame<'_>,
    area: Rect,
    job: &JobRow,
    selected: bool,
    [percent, left, title]: [usize; 3],
    styles: Styles,
) {
    let state = match job.state {
        "running" => styles.colour(Color::Cyan),
        "finished" => styles.colour(Color::Green),
        "disputed" => styles.bad(),
        _ => styles.colour(Color::Yellow),
    };
    let name =
        Style::new().add_modifier(if selected { Modifier::REVERSED } else { Modifier::empty() });
    let mut spans = vec![
        Span::raw(if selected { "> " } else { "  " }),
        Span::styled(job.short().to_owned(), name),
        Span::raw(format!("  {:>percent$}  ", job.percent)),
        Span::styled(format!("{:<left$}", job.left), state),
        Span::raw(format!("  {:<title$}  ", job.title)),
    ];
    let used = spans.iter().map(Span::width).sum::<usize>() + BAR + 1;
    let has_room = used + FREE_BESIDE_BAR <= usize::from(area.width);
    let is_open = matches!(job.state, "running" | "paused" | "disputed");
    if let Some((done, verified)) = job.shares.filter(|_| is_open && has_room) {
        spans.extend(bar(BAR, done, verified, styles));
        spans.push(Span::raw(" "));
    }
    spans.push(Span::styled(
        job.progress.clone(),
        if job.needs_attention { styles.bad() } else { Style::new() },
    ));
    frame.render_widget(Line::from(spans), area);
}

/// Returns a bar with this number of cells: verified, counted, open.
fn bar(cells: usize, done: f64, verified: f64, styles: Styles) -> [Span<'static>; 3] {
    // The casts saturate.
    let filled = |share: f64| ((share * cells as f64) as usize).min(cells);
    let (done, verified) = (filled(done), filled(verified.min(done)));
    let part = |mark: Mark, length: usize| {
        Span::styled(mark.symbol().to_string().repeat(length), styles.colour(mark.colour()))
    };
    [
        part(Mark::Verified, verified),
        part(Mark::Counted, done - verified),
        part(Mark::Open, cells - done),
    ]
}

fn draw_map(frame: &mut Frame<'_>, area: Rect, screen: &Screen, styles: Styles) {
    let title = screen.job().map_or("Units".to_owned(), |job| format!("Units of {}", job.short()));
    let mut block = styles.frame(title, false);
    let Some(map) = screen.map() else {
        return frame.render_widget(block, area);
    };
    let legend = |mark: &Mark| {
        [
            Span::styled(format!(" {}", mark.symbol()), styles.colour(mark.colour())),
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
        let cell =
            |mark: &Mark| Span::styled(mark.symbol().to_string(), styles.colour(mark.colour()));
        frame.render_widget(Line::from(marks.iter().map(cell).collect::<Vec<_>>()), row);
    }
}

/// Draws the report of a proof, which has no units.
fn draw_proof(frame: &mut Frame<'_>, area: Rect, screen: &Screen, styles: Styles) {
    let Some(job) = screen.job() else { return };
    let block = styles.frame(format!("Proof {}", job.short()), false);
    frame.render_widget(Paragraph::new(job.report.as_str()).block(block), area);
}

fn draw_rate(frame: &mut Frame<'_>, area: Rect, screen: &Screen, styles: Styles) {
    let rates = rates(screen.history(), usize::from(area.width.saturating_sub(2)));
    let most = rates.iter().copied().fold(0.0, f64::max);
    let title = match screen.history() {
        [] => "Rate".to_owned(),
        _ if most > 0.0 => format!("Rate, up to {} units/s", rounded(most)),
        _ => "Rate, 0 units/s".to_owned(),
    };
    let mut block = styles.frame(title, false);
    if let [first, .., last] = screen.history() {
        let span =
            predicted(std::time::Duration::from_millis(last.at_ms.saturating_sub(first.at_ms)));
        block = block.title_bottom(format!(
            " {} to {}: {span} ",
            clock(screen, first.at_ms),
            clock(screen, last.at_ms)
        ));
    }
    /// The height of a full bar. A bar has eight steps per row, so this is finer than any terminal.
    const FULL: f64 = 10_000.0;
    let heights = rates.iter().map(|rate| (rate / most.max(f64::MIN_POSITIVE) * FULL) as u64);
    let line = Sparkline::default().block(block).data(heights.collect::<Vec<_>>()).max(FULL as u64);
    frame.render_widget(line.style(styles.colour(Color::Cyan)), area);
}

fn draw_workers(frame: &mut Frame<'_>, area: Rect, screen: &Screen, at_ms: u64, styles: Styles) {
    let inside = area.inner(Margin::new(1, 1));
    let selected = screen.selected_worker_index();
    let visible = window(screen.workers.len(), inside.height, selected);
    let title = table_title("Workers", screen.workers.len(), &visible);
    let mut block = styles.frame(title, screen.table == Table::Workers);
    if !screen.week.is_empty() {
        block = block.title_bottom(format!(" Counted this week: {} ", screen.week));
    }
    frame.render_widget(block, area);
    if screen.workers.is_empty() {
        let nothing = "no workers yet; start one with nqueens worker --join HOST:PORT";
        return frame.render_widget(Paragraph::new(nothing), inside);
    }
    let now_ms = screen.now_ms(at_ms);
    let width = screen.workers.iter().map(|worker| worker.name.len()).max().unwrap_or(0);
    for (row, place) in inside.rows().zip(visible) {
        draw_worker(
            frame,
            row,
            &screen.workers[place],
            selected == Some(place),
            (width, now_ms),
            styles,
        );
    }
}

fn draw_worker(
    frame: &mut Frame<'_>,
    area: Rect,
    worker: &WorkerRow,
    selected: bool,
    (width, now_ms): (usize, u64),
    styles: Styles,
) {
    let name =
        Style::new().add_modifier(if selected { Modifier::REVERSED } else { Modifier::empty() });
    let state = match worker.health {
        Health::Active => Style::new(),
        Health::Resting | Health::Draining => styles.colour(Color::Yellow),
        Health::Faulty(_) | Health::Quarantined(_) => styles.bad(),
    };
    let temperature =
        worker.temperature_c.map(|degrees| format!("{degrees:.0} °C")).unwrap_or_default();
    let done = format!("{} done", counted(worker.units_done.into(), "unit"));
    let line = Line::from(vec![
        Span::raw(if selected { "> " } else { "  " }),
        Span::styled(worker.name.clone(), name),
        Span::raw(" ".repeat(width.saturating_sub(worker.name.len()))),
        Span::raw(format!("  {:<14} {:<6} {done:<16} ", worker.last_contact(now_ms), temperature)),
        Span::styled(worker.state(), state),
        Span::styled(format!("  {}", worker.devices), styles.colour(Color::DarkGray)),
    ]);
    frame.render_widget(line, area);
}

fn draw_log(frame: &mut Frame<'_>, area: Rect, screen: &Screen, styles: Styles) {
    let block = styles.frame("Log".to_owned(), false);
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let first = screen.events.len().saturating_sub(inside.height.into());
    for (row, event) in inside.rows().zip(screen.events.range(first..)) {
        let style = match event.level() {
            v1::EventLevel::Error => styles.bad(),
            v1::EventLevel::Warning => styles.colour(Color::Yellow),
            _ => Style::new(),
        };
        let job = about(event);
        let job = if job.is_empty() { job } else { format!("{job} ") };
        let line = format!(" {}  {job}{}", clock(screen, event.at_ms), plain(&event.text));
        frame.render_widget(Line::styled(line, style), row);
    }
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, screen: &Screen, styles: Styles) {
    let line = match (&screen.overlay, &screen.message) {
        (Overlay::Question(question, _), _) => {
            Line::styled(format!(" {question} y: yes, any other key: no"), styles.bad())
        }
        (_, Message::Done(text)) => Line::raw(format!(" {text}")),
        (_, Message::Failed(text)) => Line::styled(format!(" {text}"), styles.bad()),
        (_, Message::None) => Line::raw(
            " q quit  ↑↓ Tab select  Enter open  p pause  r resume  c cancel  d drain  ? keys",
        ),
    };
    frame.render_widget(line, area);
}

/// Clears a centred area with a border, and returns its inside.
fn popup(frame: &mut Frame<'_>, area: Rect, width: u16, height: u16, title: String) -> Rect {
    let area = area.centered(Constraint::Length(width), Constraint::Length(height));
    let block = Block::bordered().title(format!(" {title} "));
    let inside = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    inside
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, styles: Styles) {
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(keys, what)| {
            Line::from(vec![
                Span::styled(format!(" {keys:<9} "), styles.colour(Color::Cyan)),
                Span::raw(*what),
            ])
        })
        .chain([Line::raw(""), Line::from(" any key closes this help")])
        .collect();
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2);
    let inside = popup(frame, area, 92.min(area.width), height.min(area.height), "Keys".to_owned());
    frame.render_widget(Paragraph::new(lines), inside);
}

fn draw_report(frame: &mut Frame<'_>, area: Rect, screen: &Screen, line: u16) {
    let Some(job) = screen.job() else { return };
    let title = format!("{}: ↑↓ scroll, any other key closes", job.called());
    let inside = popup(frame, area, area.width - 4, area.height - 2, title);
    frame.render_widget(
        Paragraph::new(job.report.as_str()).wrap(Wrap { trim: false }).scroll((line, 0)),
        inside,
    );
}

/// Formats a local time of day: "19:26:59".
fn clock(screen: &Screen, at_ms: u64) -> String {
    let at_ms = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at_ms
        .map(|at| at.to_zoned(screen.zone.clone()).strftime("%H:%M:%S").to_string())
        .unwrap_or_default()
}
