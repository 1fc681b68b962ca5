use aoti_wgpu::dtype::DType;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::runtime::*;
use aoti_wgpu::tensor::DeviceType;
#[test]
fn smoke() {
    for memory in [MemoryMode::Unified, MemoryMode::Device] {
        let rt = Runtime::new(Config { memory: Some(memory), ..Config::default() });
        println!("{:?}", rt.adapter_info().unwrap());
        let data: Vec<f32> = (0..24).map(|i| i as f32).collect();
        let t = rt.from_slice(&data, &[4, 6], DType::F32, DeviceType::Mps).unwrap();
        let back = rt.to_vec(&t).unwrap();
        assert_eq!(bytemuck::cast_slice::<f32, u8>(&data), &back[..]);
        let v = rt.view(&t, &[4, 3], &[6, 1], 0).unwrap();
        assert!(v.is_packed_view());
        let p = rt.data_ptr(&v).unwrap();
        println!("{p:?} {:?}", rt.stats());
        drop((t, v));
        rt.synchronize().unwrap();
        println!("{:?}", rt.stats());
        let _ = Layout::contiguous(&[1]);
    }
}
