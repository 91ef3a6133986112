/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu.h - the few names in which HIP and CUDA differ, for the examples here.
 */
#ifndef GPU_H_
#define GPU_H_

#ifdef __HIPCC__
#include <hip/hip_runtime.h>
#define MPIX_QUEUE_GPU                  MPIX_QUEUE_HIP
#define gpuStream_t                     hipStream_t
#define gpuError_t                      hipError_t
#define gpuGetErrorString               hipGetErrorString
#define gpuStreamCreateNonBlocking(_s)  \
    hipStreamCreateWithFlags(_s, hipStreamNonBlocking)
#define gpuStreamDestroy                hipStreamDestroy
#define gpuStreamSynchronize            hipStreamSynchronize
#define gpuHostAlloc(_p, _size)         \
    hipHostMalloc(_p, _size, hipHostMallocMapped)
#define gpuHostFree                     hipHostFree
#define gpuGetLastError                 hipGetLastError
#define gpuMalloc                       hipMalloc
#define gpuFree                         hipFree
#define gpuCopyIn(_to, _from, _size)    \
    hipMemcpy(_to, _from, _size, hipMemcpyHostToDevice)
#define gpuCopyOut(_to, _from, _size)   \
    hipMemcpy(_to, _from, _size, hipMemcpyDeviceToHost)
#else
#include <cuda_runtime.h>
#define MPIX_QUEUE_GPU                  MPIX_QUEUE_CUDA
#define gpuStream_t                     cudaStream_t
#define gpuError_t                      cudaError_t
#define gpuGetErrorString               cudaGetErrorString
#define gpuStreamCreateNonBlocking(_s)  \
    cudaStreamCreateWithFlags(_s, cudaStreamNonBlocking)
#define gpuStreamDestroy                cudaStreamDestroy
#define gpuStreamSynchronize            cudaStreamSynchronize
#define gpuHostAlloc(_p, _size)         \
    cudaHostAlloc(_p, _size, cudaHostAllocMapped)
#define gpuHostFree                     cudaFreeHost
#define gpuGetLastError                 cudaGetLastError
#define gpuMalloc                       cudaMalloc
#define gpuFree                         cudaFree
#define gpuCopyIn(_to, _from, _size)    \
    cudaMemcpy(_to, _from, _size, cudaMemcpyHostToDevice)
#define gpuCopyOut(_to, _from, _size)   \
    cudaMemcpy(_to, _from, _size, cudaMemcpyDeviceToHost)
#endif

#include <mpi.h>
#include <stdio.h>

/* Ends the job with the runtime's text if a call failed. */
static inline void gpu_must(gpuError_t error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", what, gpuGetErrorString(error));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

#endif
