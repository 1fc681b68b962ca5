// 16 KiB of units of 16 bytes are 16 x 64; workgroup memory is that where no more was asked for.
const TILE: u32 = 16u;
