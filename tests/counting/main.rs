//! Counts: kernels, devices and decompositions against one naive oracle, and what survives a kill.

#[path = "../support/mod.rs"]
mod support;

mod checkpoints_survive_crashes;
mod classical_methods_agree_with_the_oracle;
mod decomposition_is_exact;
mod device_faults_never_change_a_count;
mod images_count_the_same;
mod kernel_faults_never_change_a_count;
mod kernels_agree_with_the_oracle;
mod parts_add_up_to_the_count;
mod shaders_count_like_the_oracle;
mod totals_are_the_known_ones;
