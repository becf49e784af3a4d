/* Transfers stored bytes to the device: the counterpart of the outlet. Every room has a stage on
 * the device and a stream of its own. There it is copied in one piece, checked and unpacked, while
 * others are on the link. */
#ifndef VV_GPU_CUDA_INLET_H
#define VV_GPU_CUDA_INLET_H

#include "gpu/kernels.h"

extern const struct vv_device_inlet_ops vv_inlet_cuda;

#endif
