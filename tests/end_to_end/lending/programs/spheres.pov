// Many spheres (Declare=Count=N) and few points of view.
#version 3.7;
global_settings { assumed_gamma 1 }
camera { location <0, 6, -14> look_at 0 }
light_source { <20, 30, -20> rgb 1 }
#declare Stream = seed(7);
#declare I = 0;
#while (I < Count)
  sphere {
    <rand(Stream) * 12 - 6, rand(Stream) * 12 - 6, rand(Stream) * 12 - 6>, 0.05
    pigment { rgb <rand(Stream), rand(Stream), rand(Stream)> }
  }
  #declare I = I + 1;
#end
