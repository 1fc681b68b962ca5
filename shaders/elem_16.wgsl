alias Elem = vec4<u32>;
// Workgroup memory is 16 KiB where no more was asked for.
const TILE: u32 = 16u;
