// Output places are rows and output channels columns: channels-last images. With
// conv_gather.wgsl.

alias Rows = Output;
alias Columns = Channel;

fn weight_at(i: u32) -> f32 {
    return b_at(i);
}

fn weight_quad(i: u32) -> vec4<f32> {
    return b_quad(i);
}

fn input_at(i: u32) -> f32 {
    return a_at(i);
}

fn input_quad(i: u32) -> vec4<f32> {
    return a_quad(i);
}

fn a_lane_of(i: u32) -> Lane {
    return output_lane(i);
}

fn b_lane_of(i: u32) -> Lane {
    return lane_of(1u, i);
}

fn rows_of(z: Batch, row: u32) -> Rows {
    return output_of(z, row, params.row[0].x);
}

fn columns_of(z: Batch, column: u32) -> Columns {
    return channel_of(z, column, params.row[0].y);
}

fn fetch_a(at: Rows, row: u32, k: u32, k_end: u32) -> vec4<f32> {
    return gathered(at, k, k_end);
}

fn fetch_b(at: Columns, column: u32, k: u32, k_end: u32) -> vec4<f32> {
    return weights_of(at, k, k_end);
}
