// The window of a convolution: which element of the input meets an output under an
// element of the kernel.

override KERNEL_HEIGHT: u32 = 1u;
override KERNEL_WIDTH: u32 = 1u;
override STRIDE_Y: u32 = 1u;
override STRIDE_X: u32 = 1u;
override PADDING_Y: u32 = 0u;
override PADDING_X: u32 = 0u;
override DILATION_Y: u32 = 1u;
override DILATION_X: u32 = 1u;
override TRANSPOSED: u32 = 0u;

// Where an output's window starts in the input. Of a transposed one: the place of its
// first element in an input spread out by the stride, from which the others go back.
fn window_of(y: u32, x: u32) -> vec2<i32> {
    if (TRANSPOSED == 1u) {
        return vec2<i32>(i32(y + PADDING_Y), i32(x + PADDING_X));
    }
    return vec2<i32>(i32(y * STRIDE_Y) - i32(PADDING_Y), i32(x * STRIDE_X) - i32(PADDING_X));
}

struct Source {
    y: u32,
    x: u32,
    // Whether there is such an element, rather than padding or a hole.
    inside: bool,
}

fn source_of(window: vec2<i32>, tap_y: u32, tap_x: u32, height: u32, width: u32) -> Source {
    // What lies before the input is far behind its end as a u32.
    if (TRANSPOSED == 1u) {
        let y = u32(window.x - i32(tap_y * DILATION_Y));
        let x = u32(window.y - i32(tap_x * DILATION_X));
        let at_y = y / STRIDE_Y;
        let at_x = x / STRIDE_X;
        let on_grid = at_y * STRIDE_Y == y && at_x * STRIDE_X == x;
        let before = max(y, x) >= 0x80000000u;
        return Source(at_y, at_x, on_grid && !before && at_y < height && at_x < width);
    }
    let y = u32(window.x + i32(tap_y * DILATION_Y));
    let x = u32(window.y + i32(tap_x * DILATION_X));
    return Source(y, x, y < height && x < width);
}
