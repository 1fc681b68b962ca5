// Which tiles are a workgroup's, for the kernels that go through tiles in workgroup memory.
//
// row[0]  destination offset, source offset, size along x, size along y
// row[1]  destination stride of x, source stride of x, the same of y
// row[2]  groups along x, groups along y, number of groups, dimensions around
// row[3 + d]  dimension d around the tiles: size, destination stride, source stride
// row[3].w  tiles a workgroup does, also without dimensions around
//
// x is the destination's innermost dimension, y the source's.

const LANES: u32 = 256u;
// Workgroups a row of the grid, where there are more than one row.
const FOLD: u32 = 32768u;

// The first place of a group's tiles, and where the two tensors' parts around them begin.
struct Spot {
    x: u32,
    y: u32,
    dst: u32,
    src: u32,
}

// Of group `number`, whose tiles cover `covered` along x and y.
fn spot_of(number: u32, covered: vec2<u32>) -> Spot {
    let x = (number % params.row[2].x) * covered.x;
    var rest = number / params.row[2].x;
    let y = (rest % params.row[2].y) * covered.y;
    rest = rest / params.row[2].y;
    var origin = params.row[0].xy;
    for (var d = 0u; d < params.row[2].w; d += 1u) {
        let dim = params.row[3u + d];
        origin += (rest % dim.x) * dim.yz;
        rest = rest / dim.x;
    }
    return Spot(x, y, origin.x, origin.y);
}
