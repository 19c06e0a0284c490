//! Counting on a GPU, by compute shaders.
//!
//! Rows below the block are filled level by level (`shaders/expand.wgsl`, directed by
//! `shaders/schedule.wgsl`). This emits states above the block to a ring buffer, where each lane
//! searches one state at a time (`shaders/search.wgsl`). All three work on device memory; the host
//! supplies prefixes and reads counters.
//!
//! - [`layout`]: the memory layout; [`tables`]: a job in that form;
//! - [`schedule()`], [`expand()`], [`search()`]: CPU mirrors of the shaders of the same names;
//! - [`Backend`]: runs the shaders: wgpu, or the [`Mirror`];
//! - [`DeviceKernel`]: counts units on a backend, and accepts a batch only if its accounting checks
//!   pass;
//! - [`RemoteBatches`]: units for a device that another program drives with the same shaders;
//! - [`self_test`]: known answers; [`Adapters`]: the devices of this machine.

mod accounting;
mod adapters;
mod backend;
mod batch_builder;
#[cfg(feature = "gpu")]
mod device;
mod device_job;
mod device_kernel;
mod expand;
mod fault;
pub mod layout;
mod mirror;
mod remote;
mod schedule;
mod search;
mod self_test;
pub mod sets;
pub mod tables;
mod tuning;

pub use adapters::{AdapterInfo, AdapterKind, Adapters};
pub use backend::{Backend, Batch, JobMemory, Shape, Submission};
pub use device_job::DeviceJob;
pub use device_kernel::DeviceKernel;
pub use expand::expand;
pub use fault::Fault;
pub use mirror::{Memory, Mirror};
pub use remote::{RemoteBatch, RemoteBatches, RemoteResult};
pub use schedule::schedule;
pub use search::search;
pub use self_test::self_test;
pub use tuning::{Observation, Tuning};
