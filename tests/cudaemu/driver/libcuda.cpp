// CUDA's driver, as far as virtual memory management goes: memory is a file in memory, mapped where it is asked for. Addresses
// that mean nothing, or that no device was allowed to use, cannot be read.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

typedef unsigned long long u64;
struct Location { int type, id; };
struct Properties { int type, handles; Location location; void* security; unsigned char flags[8]; };
struct Access { Location location; int flags; };

static const int INVALID = 1, OUT_OF_MEMORY = 2, CARD = 1, HOST = 3;
static const size_t UNIT = 4096;  // a small one, so that small arrays have several pieces
struct Piece { int place; size_t size, maps; };
static std::map<u64, Piece> pieces;       // by handle, which is a file descriptor
static std::map<u64, size_t> ranges;      // that are reserved
static std::map<u64, u64> mapped;         // address -> handle
static size_t used[4];

static size_t most(int place) {
  const char* text = getenv(place == CARD ? "CUDAEMU_CARD" : "CUDAEMU_HOST");
  return text && *text ? strtoull(text, nullptr, 10) : (size_t)8 << 30;
}

extern "C" int cuGetErrorString(int code, const char** text) {
  *text = code == OUT_OF_MEMORY ? "out of memory" : "invalid argument";
  return 0;
}

extern "C" int cuMemGetAllocationGranularity(size_t* size, const Properties*, int) {
  *size = UNIT;
  return 0;
}

extern "C" int cuMemAddressReserve(u64* address, size_t size, size_t, u64, u64) {
  if (size == 0 || size % UNIT) return INVALID;
  void* found = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return OUT_OF_MEMORY;
  *address = (u64)found, ranges[*address] = size;
  return 0;
}

extern "C" int cuMemAddressFree(u64 address, size_t size) {
  auto range = ranges.find(address);
  if (range == ranges.end() || range->second != size) return INVALID;
  for (auto [place, handle] : mapped)
    if (place >= address && place < address + size) return INVALID;  // is to be unmapped before
  ranges.erase(range);
  return munmap((void*)address, size) ? INVALID : 0;
}

extern "C" int cuMemCreate(u64* handle, size_t size, const Properties* given, u64) {
  int place = given->location.type;
  if (size == 0 || size % UNIT || (place != CARD && place != HOST)) return INVALID;
  if (used[place] + size > most(place)) return OUT_OF_MEMORY;
  int file = memfd_create("cudaemu-piece", 0);
  if (file < 0 || ftruncate(file, size)) return OUT_OF_MEMORY;
  *handle = file, pieces[file] = {place, size, 0}, used[place] += size;
  return 0;
}

extern "C" int cuMemRelease(u64 handle) {
  auto piece = pieces.find(handle);
  if (piece == pieces.end() || piece->second.maps) return INVALID;
  used[piece->second.place] -= piece->second.size;
  pieces.erase(piece);
  return close((int)handle) ? INVALID : 0;
}

extern "C" int cuMemMap(u64 address, size_t size, size_t offset, u64 handle, u64) {
  auto piece = pieces.find(handle);
  if (piece == pieces.end() || piece->second.size != size || offset || mapped.count(address)) return INVALID;
  if (mmap((void*)address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, (int)handle, 0) == MAP_FAILED) return INVALID;
  mapped[address] = handle, piece->second.maps++;
  return 0;
}

extern "C" int cuMemSetAccess(u64 address, size_t size, const Access* access, size_t count) {
  if (count != 1 || access->location.type != CARD || !mapped.count(address)) return INVALID;
  return mprotect((void*)address, size, PROT_READ | PROT_WRITE) ? INVALID : 0;
}

extern "C" int cuMemUnmap(u64 address, size_t size) {
  auto place = mapped.find(address);
  if (place == mapped.end() || pieces[place->second].size != size) return INVALID;
  void* none = mmap((void*)address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (none == MAP_FAILED) return INVALID;
  pieces[place->second].maps--;
  mapped.erase(place);
  return 0;
}
