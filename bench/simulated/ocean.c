// Currents of an ocean basin on 25 arrays, after the program Ocean of SPLASH: ocean ROWS COLUMNS STEPS
//   cc -O2 -o ocean ocean.c -lm
// Each step computes the Jacobians of two layers' stream functions, adds wind and friction to the vorticities, and solves one elliptic
// equation a layer by multigrid with red-black Gauss-Seidel sweeps. ROWS and COLUMNS count inner points; both are multiples of 8. Prints the
// largest residual that remained, relative to the right side, and a checksum. `ocean check` solves an equation with a known solution.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAYS = 25, MOST_LEVELS = 12, CYCLES = 8, SWEEPS = 2, COARSEST_SWEEPS = 60 };

// One array on one grid: (rows + 2) × (columns + 2) values, with a border of zeros.
struct grid {
  int rows, columns;
  double step;
};
static double *at(double *array, struct grid grid, int row) { return array + (size_t)row * (grid.columns + 2); }
static size_t values(struct grid grid) { return (size_t)(grid.rows + 2) * (grid.columns + 2); }

static double *made(struct grid grid) {
  double *array = calloc(values(grid), sizeof *array);
  if (!array) perror("ocean: memory"), exit(1);
  return array;
}

// The grids of a multigrid solver. The finest solution and right side are the caller's; `residual` is as fine as they are.
struct solver {
  int levels;
  struct grid grids[MOST_LEVELS];
  double *solution[MOST_LEVELS], *right[MOST_LEVELS], *residual[MOST_LEVELS];
  double shift; // the equation is laplace(solution) - shift * solution = right
};

static struct solver solver(struct grid finest, double shift) {
  struct solver made_solver = {.levels = 1, .shift = shift};
  made_solver.grids[0] = finest;
  made_solver.residual[0] = made(finest);
  while (made_solver.levels < MOST_LEVELS) {
    struct grid grid = made_solver.grids[made_solver.levels - 1];
    if (grid.rows % 2 || grid.columns % 2 || grid.rows < 4 || grid.columns < 4) break;
    grid = (struct grid){grid.rows / 2, grid.columns / 2, grid.step * 2};
    made_solver.grids[made_solver.levels] = grid;
    made_solver.solution[made_solver.levels] = made(grid);
    made_solver.right[made_solver.levels] = made(grid);
    made_solver.residual[made_solver.levels] = made(grid);
    made_solver.levels++;
  }
  return made_solver;
}

// Values at the border are cell faces' zeros: a ghost point is minus its inner neighbour.
static void mirror(double *array, struct grid grid) {
  double *first = at(array, grid, 0), *second = at(array, grid, 1);
  double *last = at(array, grid, grid.rows + 1), *inner = at(array, grid, grid.rows);
  for (int j = 1; j <= grid.columns; j++) first[j] = -second[j], last[j] = -inner[j];
  for (int i = 1; i <= grid.rows; i++) {
    double *row = at(array, grid, i);
    row[0] = -row[1], row[grid.columns + 1] = -row[grid.columns];
  }
}

static void sweep(struct solver *s, int level) {
  struct grid grid = s->grids[level];
  double square = grid.step * grid.step, diagonal = 1 / (4 + s->shift * square);
  for (int colour = 0; colour < 2; colour++) {
    for (int i = 1; i <= grid.rows; i++) {
      double *row = at(s->solution[level], grid, i), *above = at(s->solution[level], grid, i - 1), *below = at(s->solution[level], grid, i + 1);
      double *right = at(s->right[level], grid, i);
      for (int j = 1 + (i + colour) % 2; j <= grid.columns; j += 2)
        row[j] = (above[j] + below[j] + row[j - 1] + row[j + 1] - square * right[j]) * diagonal;
    }
    mirror(s->solution[level], grid);
  }
}

// Computes the residual, and returns its largest value.
static double residual(struct solver *s, int level) {
  struct grid grid = s->grids[level];
  double square = grid.step * grid.step, largest = 0;
  for (int i = 1; i <= grid.rows; i++) {
    double *row = at(s->solution[level], grid, i), *above = at(s->solution[level], grid, i - 1), *below = at(s->solution[level], grid, i + 1);
    double *right = at(s->right[level], grid, i), *out = at(s->residual[level], grid, i);
    for (int j = 1; j <= grid.columns; j++) {
      double laplace = (above[j] + below[j] + row[j - 1] + row[j + 1] - 4 * row[j]) / square;
      out[j] = right[j] - laplace + s->shift * row[j];
      largest = fmax(largest, fabs(out[j]));
    }
  }
  return largest;
}

// A coarse cell's right side is the mean of its four fine cells' residuals.
static void coarsen(struct solver *s, int level) {
  struct grid grid = s->grids[level + 1];
  memset(s->solution[level + 1], 0, values(grid) * sizeof(double));
  for (int i = 1; i <= grid.rows; i++) {
    double *upper = at(s->residual[level], s->grids[level], 2 * i - 1), *lower = at(s->residual[level], s->grids[level], 2 * i);
    double *out = at(s->right[level + 1], grid, i);
    for (int j = 1; j <= grid.columns; j++) out[j] = (upper[2 * j - 1] + upper[2 * j] + lower[2 * j - 1] + lower[2 * j]) / 4;
  }
}

// Adds the coarse correction, interpolated between the four nearest coarse cells.
static void refine(struct solver *s, int level) {
  struct grid grid = s->grids[level], coarse = s->grids[level + 1];
  for (int i = 1; i <= grid.rows; i++) {
    double *out = at(s->solution[level], grid, i);
    double *near = at(s->solution[level + 1], coarse, (i + 1) / 2), *far = at(s->solution[level + 1], coarse, i % 2 ? (i - 1) / 2 : i / 2 + 1);
    for (int j = 1; j <= grid.columns; j++) {
      int beside = (j + 1) / 2, beyond = j % 2 ? (j - 1) / 2 : j / 2 + 1;
      out[j] += (9 * near[beside] + 3 * near[beyond] + 3 * far[beside] + far[beyond]) / 16;
    }
  }
  mirror(s->solution[level], grid);
}

static void cycle(struct solver *s, int level) {
  if (level == s->levels - 1) {
    for (int i = 0; i < COARSEST_SWEEPS; i++) sweep(s, level);
    return;
  }
  for (int i = 0; i < SWEEPS; i++) sweep(s, level);
  residual(s, level);
  coarsen(s, level);
  cycle(s, level + 1);
  refine(s, level);
  for (int i = 0; i < SWEEPS; i++) sweep(s, level);
}

// Solves for `solution`, which holds the first guess. Returns the largest residual relative to the largest right side.
static double solve(struct solver *s, double *solution, double *right) {
  s->solution[0] = solution, s->right[0] = right;
  mirror(solution, s->grids[0]);
  for (int i = 0; i < CYCLES; i++) cycle(s, 0);
  double largest = 0;
  for (size_t i = 0; i < values(s->grids[0]); i++) largest = fmax(largest, fabs(right[i]));
  return residual(s, 0) / fmax(largest, 1e-300);
}

// Arakawa's Jacobian of two arrays, which keeps energy and enstrophy.
static void jacobian(double *out, double *a, double *b, struct grid grid) {
  double factor = 1 / (12 * grid.step * grid.step);
  for (int i = 1; i <= grid.rows; i++) {
    double *au = at(a, grid, i - 1), *am = at(a, grid, i), *ad = at(a, grid, i + 1);
    double *bu = at(b, grid, i - 1), *bm = at(b, grid, i), *bd = at(b, grid, i + 1), *row = at(out, grid, i);
    for (int j = 1; j <= grid.columns; j++) {
      double one = (am[j + 1] - am[j - 1]) * (bd[j] - bu[j]) - (ad[j] - au[j]) * (bm[j + 1] - bm[j - 1]);
      double two = am[j + 1] * (bd[j + 1] - bu[j + 1]) - am[j - 1] * (bd[j - 1] - bu[j - 1]) - ad[j] * (bd[j + 1] - bd[j - 1]) +
                   au[j] * (bu[j + 1] - bu[j - 1]);
      double three = bd[j] * (ad[j + 1] - ad[j - 1]) - bu[j] * (au[j + 1] - au[j - 1]) - bm[j + 1] * (ad[j + 1] - au[j + 1]) +
                     bm[j - 1] * (ad[j - 1] - au[j - 1]);
      row[j] = (one + two + three) * factor;
    }
  }
}

static void laplace(double *out, double *of, struct grid grid) {
  double factor = 1 / (grid.step * grid.step);
  for (int i = 1; i <= grid.rows; i++) {
    double *up = at(of, grid, i - 1), *row = at(of, grid, i), *down = at(of, grid, i + 1), *to = at(out, grid, i);
    for (int j = 1; j <= grid.columns; j++) to[j] = (up[j] + down[j] + row[j - 1] + row[j + 1] - 4 * row[j]) * factor;
  }
}

// Solves laplace(u) - shift u = f for u = sin(pi x) sin(2 pi y): 0 if the error is that of the discretization.
static int check(void) {
  const double pi = acos(-1), shift = 3;
  struct grid grid = {64, 128, 1.0 / 128};
  struct solver s = solver(grid, shift);
  double *solution = made(grid), *right = made(grid), height = 0.5, error = 0;
  for (int i = 1; i <= grid.rows; i++)
    for (int j = 1; j <= grid.columns; j++) {
      double exact = sin(pi * (i - 0.5) * grid.step / height) * sin(2 * pi * (j - 0.5) * grid.step);
      at(right, grid, i)[j] = -(pi * pi / (height * height) + 4 * pi * pi + shift) * exact;
    }
  double left = solve(&s, solution, right);
  for (int i = 1; i <= grid.rows; i++)
    for (int j = 1; j <= grid.columns; j++) {
      double exact = sin(pi * (i - 0.5) * grid.step / height) * sin(2 * pi * (j - 0.5) * grid.step);
      error = fmax(error, fabs(at(solution, grid, i)[j] - exact));
    }
  printf("residual %.1e, error %.1e\n", left, error);
  return left < 1e-6 && error < 1e-3 ? 0 : 1;
}

// The arrays of a run: of each of two layers the stream function and vorticity at three times, Jacobians, friction and velocities; and three
// of the basin. The solvers' finest residuals are two more, so that 25 arrays have the finest grid's size.
enum { STREAM, STREAM_BEFORE, VORTICITY, VORTICITY_BEFORE, VORTICITY_NEXT, ADVECTION, FRICTION, EASTWARD, NORTHWARD, RIGHT, OF_LAYER };
enum { WIND = 2 * OF_LAYER, DEPTH, ENERGY, OF_RUN };
_Static_assert(OF_RUN + 2 == ARRAYS, "25 arrays");

static void start(double **arrays, struct grid grid) {
  const double pi = acos(-1);
  uint64_t random = 88172645463325252ull;
  for (int i = 1; i <= grid.rows; i++)
    for (int j = 1; j <= grid.columns; j++) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      double noise = (double)(random >> 11) / 9007199254740992.0 - 0.5, y = (i - 0.5) / grid.rows, x = (j - 0.5) / grid.columns;
      at(arrays[WIND], grid, i)[j] = -sin(pi * y) * pi;
      at(arrays[DEPTH], grid, i)[j] = 1 + 0.2 * sin(3 * pi * x) * sin(2 * pi * y);
      for (int layer = 0; layer < 2; layer++)
        at(arrays[layer * OF_LAYER + VORTICITY], grid, i)[j] = (layer ? -0.5 : 1) * (sin(pi * x) * sin(2 * pi * y) + 0.1 * noise);
    }
}

// One step of a layer. Returns the residual that the solver left.
static double advance(struct solver *s, double **layer, double **arrays, struct grid grid, double dt, int is_upper) {
  memcpy(layer[STREAM_BEFORE], layer[STREAM], values(grid) * sizeof(double));
  jacobian(layer[ADVECTION], layer[STREAM], layer[VORTICITY], grid);
  laplace(layer[FRICTION], layer[VORTICITY_BEFORE], grid);
  for (int i = 1; i <= grid.rows; i++) {
    double *now = at(layer[VORTICITY], grid, i), *before = at(layer[VORTICITY_BEFORE], grid, i), *next = at(layer[VORTICITY_NEXT], grid, i);
    double *advection = at(layer[ADVECTION], grid, i), *friction = at(layer[FRICTION], grid, i), *right = at(layer[RIGHT], grid, i);
    double *wind = at(arrays[WIND], grid, i), *depth = at(arrays[DEPTH], grid, i);
    for (int j = 1; j <= grid.columns; j++) {
      double force = is_upper ? 0.1 * wind[j] : 0;
      next[j] = before[j] + 2 * dt * ((force - advection[j]) / depth[j] + 1e-4 * friction[j] - 0.05 * before[j]);
      before[j] = now[j] + 0.05 * (next[j] - 2 * now[j] + before[j]); // Asselin's filter
      right[j] = next[j];
      now[j] = next[j];
    }
  }
  double left = solve(s, layer[STREAM], layer[RIGHT]);
  for (int i = 1; i <= grid.rows; i++) {
    double *up = at(layer[STREAM], grid, i - 1), *row = at(layer[STREAM], grid, i), *down = at(layer[STREAM], grid, i + 1);
    double *u = at(layer[EASTWARD], grid, i), *v = at(layer[NORTHWARD], grid, i), *energy = at(arrays[ENERGY], grid, i);
    for (int j = 1; j <= grid.columns; j++) {
      u[j] = (up[j] - down[j]) / (2 * grid.step), v[j] = (row[j + 1] - row[j - 1]) / (2 * grid.step);
      energy[j] = (is_upper ? 0 : energy[j]) + (u[j] * u[j] + v[j] * v[j]) / 2;
    }
  }
  return left;
}

int main(int count, char **arguments) {
  if (count == 2 && !strcmp(arguments[1], "check")) return check();
  struct grid grid = {count == 4 ? atoi(arguments[1]) : 0, count == 4 ? atoi(arguments[2]) : 0, 0};
  if (grid.rows < 8 || grid.rows > 1 << 14 || grid.rows % 8 || grid.columns < 8 || grid.columns > 1 << 14 || grid.columns % 8)
    return fprintf(stderr, "ocean ROWS COLUMNS STEPS (rows and columns: multiples of 8), or ocean check\n"), 2;
  grid.step = 1.0 / grid.rows;
  double *arrays[OF_RUN], dt = 0.2 * grid.step, worst = 0;
  for (int i = 0; i < OF_RUN; i++) arrays[i] = made(grid);
  struct solver solvers[2] = {solver(grid, 0), solver(grid, 20)};
  start(arrays, grid);
  for (int step = 0; step < atoi(arguments[3]); step++)
    for (int layer = 0; layer < 2; layer++)
      worst = fmax(worst, advance(&solvers[layer], arrays + layer * OF_LAYER, arrays, grid, dt, layer == 0));
  double sum = 0;
  for (size_t i = 0; i < values(grid); i++) sum += arrays[ENERGY][i];
  printf("residual %.1e, energy %.6e\n", worst, sum * grid.step * grid.step);
  return worst < 1e-2 && isfinite(sum) ? 0 : 1;
}
