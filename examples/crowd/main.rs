//! Simulated workers for a coordinator without an authority on this machine. They show how screens
//! present many workers, and workers that report hostile text about themselves.
//!
//! `cargo run --release --example crowd -- DATA WORKERS UNITS_PER_S [DEVICE]` simulates WORKERS
//! workers until the process is killed. Each delivers UNITS_PER_S units per second and has a device
//! with the name DEVICE.

mod pretender;

use std::path::Path;
use std::time::Duration;

use nqueens::cluster::coordinator::AddressFile;
use nqueens::cluster::protocol::{Address, Channel, Security, v1};
use pretender::Pretender;

/// The pause between the calls of one worker.
const PAUSE: Duration = Duration::from_secs(2);

/// Runs one worker, with a device of this name, until the end of the process. Failed calls are
/// repeated.
async fn work(mut worker: Pretender, device: String, units_per_s: f64) {
    let temperature_c = 48.0 + 20.0 * fastrand::f64();
    // The workers do not all start at the same moment.
    tokio::time::sleep(PAUSE.mul_f64(fastrand::f64())).await;
    let mut turn = fastrand::u32(..5);
    loop {
        if worker.is_idle() || turn % 5 == 0 {
            let device = v1::Device {
                id: "cpu".into(),
                name: device.clone(),
                kernel: "pretended".into(),
                capacity: 4,
                fault: String::new(),
                temperature_c: Some(temperature_c + 6.0 * fastrand::f64()),
            };
            let _ = worker.sync(Some(device)).await;
        }
        let most = units_per_s * PAUSE.as_secs_f64() * (0.5 + fastrand::f64());
        let _ = worker.complete(most.round() as usize).await;
        tokio::time::sleep(PAUSE).await;
        turn += 1;
    }
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [data, workers, units_per_s, device @ ..] = &words[..] else {
        panic!("usage: crowd DATA WORKERS UNITS_PER_S [DEVICE]")
    };
    let (workers, units_per_s): (u64, f64) = (
        workers.parse().expect("a number of workers"),
        units_per_s.parse().expect("a number of units per second"),
    );
    let device = device.first().map_or("a simulated processor", String::as_str);
    let address: Address = AddressFile::read(Path::new(data))
        .expect("a coordinator runs")
        .address
        .parse()
        .expect("an address");
    let tasks: Vec<_> = (1..=workers)
        .map(|number| {
            let link = Channel::new(&address, &Security::Plain, Duration::from_secs(30))
                .expect("a channel");
            let units_per_s = units_per_s * (0.6 + 0.8 * fastrand::f64());
            let worker = Pretender::new(format!("node-{number:03}"), link, units_per_s);
            tokio::spawn(work(worker, device.to_owned(), units_per_s))
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}
