// The calls of cuBLAS that treadle makes, on the processor: what they are given is judged as cuBLAS
// judges it, and computed in double.

#include <cmath>
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

// The calls of cuBLASLt. Descriptions keep their attributes; a product is judged by them.

struct Attribute { int64_t value; bool given; };
struct Description { int kind; Attribute attributes[64]; int64_t type, rows, columns, lead; int sums, scale; };
struct Algorithm { uint64_t data[8]; };
struct Choice { Algorithm algorithm; size_t workspace; int state; float waves; int reserved[4]; };
enum { OPERATION = 1, LAYOUT, PREFERENCE };
enum { MAGIC = 4711 };

extern "C" { int lt_alive, lt_asked, lt_refuses; }
static int lt_handles;

static int64_t attribute(const Description *of, int number, int64_t otherwise) {
  return of->attributes[number].given ? of->attributes[number].value : otherwise;
}
static int made(void **place, int kind) {
  Description *d = new Description();
  d->kind = kind;
  *place = d;
  lt_alive++;
  return 0;
}
static int ended(void *place, int kind) {
  Description *d = (Description *)place;
  if (d->kind != kind) return 7;
  delete d;
  lt_alive--;
  return 0;
}
static int set(void *place, int kind, int number, const void *value, size_t size, size_t wanted) {
  Description *d = (Description *)place;
  if (d->kind != kind || !wanted || size != wanted) return 7;
  int64_t found = 0;
  memcpy(&found, value, size);
  d->attributes[number] = {found, true};
  return 0;
}
// Rows and columns of a matrix as it is read; false where it is not `rows` x `columns`.
static bool is_matrix(const Description *d, bool turned, int64_t rows, int64_t columns, int type) {
  if (d->kind != LAYOUT || d->type != type || d->lead < d->rows) return false;
  return turned ? d->rows == columns && d->columns == rows : d->rows == rows && d->columns == columns;
}
static int judged(const Description *op, const Description *a, const Description *b, const Description *d) {
  const bool turn_a = attribute(op, 3, 0), turn_b = attribute(op, 4, 0);
  const int type = int(d->type);
  const int64_t k = turn_a ? a->rows : a->columns, batch = attribute(d, 5, 1);
  if (op->kind != OPERATION || d->lead < d->rows || !bytes(type) || type == COMPLEX_FLOAT || type == COMPLEX_DOUBLE) return 7;
  if (!is_matrix(a, turn_a, d->rows, k, type) || !is_matrix(b, turn_b, k, d->columns, type)) return 7;
  if (attribute(a, 5, 1) != batch || attribute(b, 5, 1) != batch) return 7;
  if (op->scale != (type == DOUBLE ? DOUBLE : FLOAT) || (op->sums == 70) != (type == DOUBLE)) return 7;
  if (op->sums != 68 && op->sums != 70 && !(op->sums == 77 && type == FLOAT)) return 7;
  const int64_t epilogue = attribute(op, 7, 1);
  const bool known = epilogue == 2 || epilogue == 4 || epilogue == 6 || epilogue == 32 || epilogue == 36 || epilogue == 160 || epilogue == 164;
  if (!known || ((epilogue & 4) && !attribute(op, 8, 0))) return 7;
  if ((epilogue & 128) && (!attribute(op, 11, 0) || attribute(op, 12, 0) % 8 || attribute(op, 12, 0) < d->rows)) return 7;
  return 0;
}

extern "C" {
int cublasLtCreate(void **handle) { *handle = &lt_handles; return 0; }
int cublasLtMatmulDescCreate(void **place, int sums, int scale) {
  made(place, OPERATION);
  ((Description *)*place)->sums = sums;
  ((Description *)*place)->scale = scale;
  return 0;
}
int cublasLtMatmulDescDestroy(void *place) { return ended(place, OPERATION); }
int cublasLtMatmulDescSetAttribute(void *place, int number, const void *value, size_t size) {
  const bool narrow = number == 3 || number == 4 || number == 7, wide = number == 8 || (number > 10 && number < 14);
  return set(place, OPERATION, number, value, size, narrow ? 4 : wide ? 8 : 0);
}
int cublasLtMatrixLayoutCreate(void **place, int type, uint64_t rows, uint64_t columns, int64_t lead) {
  made(place, LAYOUT);
  Description *d = (Description *)*place;
  d->type = type, d->rows = rows, d->columns = columns, d->lead = lead;
  return 0;
}
int cublasLtMatrixLayoutDestroy(void *place) { return ended(place, LAYOUT); }
int cublasLtMatrixLayoutSetAttribute(void *place, int number, const void *value, size_t size) {
  return set(place, LAYOUT, number, value, size, number == 5 ? 4 : number == 6 ? 8 : 0);
}
int cublasLtMatmulPreferenceCreate(void **place) { return made(place, PREFERENCE); }
int cublasLtMatmulPreferenceDestroy(void *place) { return ended(place, PREFERENCE); }
int cublasLtMatmulPreferenceSetAttribute(void *place, int number, const void *value, size_t size) {
  return set(place, PREFERENCE, number, value, size, number == 1 ? 8 : number == 3 || (number > 4 && number < 9) ? 4 : 0);
}
int cublasLtMatmulAlgoGetHeuristic(
    void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int wanted,
    Choice *found, int *count) {
  const Description *wish = (Description *)preference;
  if (handle != &lt_handles || wish->kind != PREFERENCE || wanted < 1 || c != d) return 7;
  const int bad = judged((Description *)operation, (Description *)a, (Description *)b, (Description *)d);
  if (bad) return bad;
  lt_asked++;
  *count = 0;
  if (lt_refuses) return lt_refuses > 0 ? lt_refuses : 0;
  if (attribute(wish, 3, 7) != 2) return 15;  // sums that are rounded on the way
  *found = {};
  found->algorithm.data[0] = MAGIC;
  for (int n = 0; n < 4; n++) found->algorithm.data[1 + n] = attribute(wish, 5 + n, 256);
  found->workspace = 1;
  *count = 1;
  return 0;
}
int cublasLtMatmul(
    void *handle, void *operation, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout,
    const void *beta, const void *c, void *c_layout, void *d, void *d_layout, const Algorithm *algorithm,
    void *workspace, size_t size, void *stream) {
  const Description *op = (Description *)operation, *la = (Description *)a_layout, *lb = (Description *)b_layout, *ld = (Description *)d_layout;
  const int bad = judged(op, la, lb, ld);
  if (bad || handle != &lt_handles || c != d || c_layout != d_layout || !stream || !workspace || !size) return 7;
  const void *places[] = {a, b, c, d};
  for (int n = 0; n < 4; n++)
    if (algorithm->data[0] != MAGIC || uint64_t(places[n]) % algorithm->data[1 + n]) return 7;
  const int type = int(ld->type), width = bytes(type);
  const bool wide = type == DOUBLE, turn_a = attribute(op, 3, 0), turn_b = attribute(op, 4, 0);
  if (read((const char *)alpha, wide ? DOUBLE : FLOAT, wide) != Number(1) || read((const char *)beta, wide ? DOUBLE : FLOAT, wide) != Number(0)) return 7;
  const int64_t epilogue = attribute(op, 7, 1), k = turn_a ? la->rows : la->columns, batch = attribute(ld, 5, 1);
  const char *bias = (const char *)attribute(op, 8, 0);
  char *kept = (char *)attribute(op, 11, 0);
  for (int64_t i = 0; i < batch; i++)
    for (int64_t row = 0; row < ld->rows; row++)
      for (int64_t column = 0; column < ld->columns; column++) {
        double sum = 0;
        for (int64_t l = 0; l < k; l++) {
          const int64_t x = i * attribute(la, 6, 0) + (turn_a ? l + row * la->lead : row + l * la->lead);
          const int64_t y = i * attribute(lb, 6, 0) + (turn_b ? column + l * lb->lead : l + column * lb->lead);
          sum += read((const char *)a + x * width, type, wide).real() * read((const char *)b + y * width, type, wide).real();
        }
        if (epilogue & 4) sum += read(bias + row * width, type, wide).real();
        if (epilogue & 128) write(kept + (i * attribute(op, 13, 0) + row + column * attribute(op, 12, 0)) * width, type, sum);
        if (epilogue & 2) sum = sum < 0 ? 0 : sum;
        if (epilogue & 32) sum *= 0.5 * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
        write((char *)d + (i * attribute(ld, 6, 0) + row + column * ld->lead) * width, type, sum);
      }
  return 0;
}
}
