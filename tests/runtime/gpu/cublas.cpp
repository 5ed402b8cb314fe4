// The calls of cuBLAS that treadle makes, on the processor: what they are given is judged as cuBLAS
// judges it, and computed in double.

#include <complex>
#include <cstdint>
#include <cstring>

typedef std::complex<double> Number;
enum { FLOAT = 0, DOUBLE = 1, HALF = 2, COMPLEX_FLOAT = 4, COMPLEX_DOUBLE = 5, BFLOAT = 14 };
static int handles, math_mode;

static int bytes(int type) {
  switch (type) {
    case FLOAT: return 4;
    case DOUBLE: return 8;
    case HALF: return 2;
    case BFLOAT: return 2;
    case COMPLEX_FLOAT: return 8;
    case COMPLEX_DOUBLE: return 16;
  }
  return 0;
}
static Number read(const char *at, int type, bool wide) {
  float parts[2] = {0, 0};
  double doubles[2] = {0, 0};
  uint32_t bits;
  uint16_t half;
  switch (type) {
    case FLOAT: memcpy(parts, at, 4); break;
    case COMPLEX_FLOAT: memcpy(parts, at, 8); break;
    case HALF: { _Float16 x; memcpy(&x, at, 2); parts[0] = x; break; }
    case BFLOAT: memcpy(&half, at, 2); bits = uint32_t(half) << 16; memcpy(parts, &bits, 4); break;
    case DOUBLE: memcpy(doubles, at, 8); break;
    case COMPLEX_DOUBLE: memcpy(doubles, at, 16); break;
  }
  return wide ? Number(doubles[0], doubles[1]) : Number(parts[0], parts[1]);
}
static void write(char *at, int type, Number x) {
  float parts[2] = {float(x.real()), float(x.imag())};
  double doubles[2] = {x.real(), x.imag()};
  switch (type) {
    case FLOAT: memcpy(at, parts, 4); break;
    case COMPLEX_FLOAT: memcpy(at, parts, 8); break;
    case HALF: { _Float16 y = _Float16(parts[0]); memcpy(at, &y, 2); break; }
    case BFLOAT: {
      uint32_t bits;
      memcpy(&bits, parts, 4);
      bits += 0x7fff + ((bits >> 16) & 1);
      uint16_t y = uint16_t(bits >> 16);
      memcpy(at, &y, 2);
      break;
    }
    case DOUBLE: memcpy(at, doubles, 8); break;
    case COMPLEX_DOUBLE: memcpy(at, doubles, 16); break;
  }
}

extern "C" {
int cublasCreate_v2(void **handle) { *handle = &handles; handles++; return 0; }
int cublasSetStream_v2(void *handle, void *stream) { return handle != &handles; }
int cublasSetMathMode(void *handle, int mode) { math_mode = mode; return handle != &handles; }
int cublasSetWorkspace_v2(void *handle, void *place, size_t size) { return handle != &handles || !place || !size; }

int cublasGemmStridedBatchedEx_64(
    void *handle, int turn_a, int turn_b, int64_t m, int64_t n, int64_t k, const void *alpha,
    const void *a, int type_a, int64_t lda, long long step_a,
    const void *b, int type_b, int64_t ldb, long long step_b, const void *beta,
    void *c, int type_c, int64_t ldc, long long step_c, int64_t batch, int sums, int method) {
  const bool wide = type_a == DOUBLE || type_a == COMPLEX_DOUBLE;
  const bool half = type_a == HALF || type_a == BFLOAT;
  if (handle != &handles || type_a != type_b || type_a != type_c || !bytes(type_a)) return 7;
  if (turn_a < 0 || turn_a > 1 || turn_b < 0 || turn_b > 1 || m < 1 || n < 1 || k < 1 || batch < 1) return 7;
  if (lda < (turn_a ? k : m) || ldb < (turn_b ? n : k) || ldc < m) return 7;
  if (sums != 68 && sums != 70 && sums != 77) return 7;
  if ((sums == 70) != wide || (sums == 77 && half) || method != -1) return 15;
  if (half && math_mode != 16) return 15;  // partial sums of 16 bits
  const int scale = type_a == COMPLEX_FLOAT || type_a == COMPLEX_DOUBLE ? type_a : wide ? DOUBLE : FLOAT;
  const Number one = read((const char *)alpha, scale, wide), zero = read((const char *)beta, scale, wide);
  if (one != Number(1) || zero != Number(0)) return 7;
  const int size = bytes(type_a);
  for (int64_t i = 0; i < batch; i++)
    for (int64_t row = 0; row < m; row++)
      for (int64_t column = 0; column < n; column++) {
        Number sum = 0;
        for (int64_t l = 0; l < k; l++) {
          const int64_t x = i * step_a + (turn_a ? l + row * lda : row + l * lda);
          const int64_t y = i * step_b + (turn_b ? column + l * ldb : l + column * ldb);
          sum += read((const char *)a + x * size, type_a, wide) * read((const char *)b + y * size, type_b, wide);
        }
        write((char *)c + (i * step_c + row + column * ldc) * size, type_a, sum);
      }
  return 0;
}
}
