import numpy as np, glob, os
from PIL import Image, ImageOps
for f in sorted(glob.glob('/tmp/codecs/files/*')):
    n=os.path.basename(f); o=f'/tmp/codecs/our_{n}.raw'
    if not os.path.exists(o): print(n,'-'); continue
    b=open(o,'rb').read(); h,w,c,ori=np.frombuffer(b[:16],np.int32); a=np.frombuffer(b[16:],np.uint8).reshape(h,w,c)
    a=np.broadcast_to(a,(h,w,3))
    im=Image.fromarray(a.copy()); ex=Image.Exif(); ex[0x112]=int(ori)
    tr={1:None,2:0,3:3,4:1,5:5,6:4,7:6,8:2}[int(ori)]
    if tr is not None: im=im.transpose(tr)
    a=np.asarray(im).astype(int); r=[n,c,ori]
    d=f'/tmp/codecs/dali_{n}_rgb.npy'
    if os.path.exists(d):
        D=np.load(d).astype(int); r.append(('dali',np.abs(a-D).max(),round((a!=D).mean(),4)) if D.shape==a.shape else ('dali shape',D.shape))
        G=np.load(d.replace('_rgb','_gray')).astype(int)[...,0]; L=(19595*a[...,0]+38470*a[...,1]+7471*a[...,2]+32768)>>16 if c==3 else a[...,0]
        r.append(('gray',np.abs(G-L).max()))
        Y=np.load(d.replace('_rgb','_ycbcr')).astype(int); M=np.array([[269262,528618,102662],[-155423,-305129,460551+1],[460551,-385653,-74897]])
        st=np.stack([(269262*a[...,0]+528618*a[...,1]+102662*a[...,2]+(16<<20)+(1<<19))>>20,(-155423*a[...,0]-305128*a[...,1]+460551*a[...,2]+(128<<20)+(1<<19))>>20,(460551*a[...,0]-385654*a[...,1]-74897*a[...,2]+(128<<20)+(1<<19))>>20],-1)
        r.append(('ycc',np.abs(Y-st).max(),(Y!=st).mean()))
    try:
        p=ImageOps.exif_transpose(Image.open(f)).convert('RGB'); p=np.asarray(p).astype(int); r.append(('pil',np.abs(a-p).max()))
    except Exception as e: r.append(('pil',str(e)[:30]))
    print(*r)
